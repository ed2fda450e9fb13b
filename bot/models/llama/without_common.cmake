# The build script of llama-cpp-sys-2 always asks for llama.cpp's library `common` (arguments, chat templates, HTTP), because
# llama-cpp-2 leaves that feature on. Azera calls nothing of it, and it takes longer to compile than all the rest. .cargo/config.toml
# has CMake read this file.
set(LLAMA_BUILD_COMMON OFF CACHE BOOL "" FORCE)
