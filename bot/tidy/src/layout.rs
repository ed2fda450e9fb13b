/// A crate, and the crates of this workspace that it may use.
#[derive(Debug, Clone, Copy)]
pub struct Edge {
    /// The package's name.
    pub package: &'static str,
    /// The packages that it may use; `*` means all.
    pub uses: &'static [&'static str],
}

/// Every crate of the workspace, lowest layer first. Adapters, engine, memory and models meet only through contracts;
/// only the binary connects them.
pub const EDGES: &[Edge] = &[
    Edge { package: "azera-types", uses: &[] },
    Edge { package: "azera-config", uses: &[] },
    Edge { package: "azera-model-gguf", uses: &[] },
    Edge { package: "azera-model-registry", uses: &["azera-model-gguf"] },
    Edge { package: "azera-model-training", uses: &["azera-model-gguf"] },
    Edge { package: "azera-model-api", uses: &["azera-types"] },
    Edge { package: "azera-breaker", uses: &[] },
    Edge {
        package: "azera-model-llama",
        // Only its tests use the trainer, to check that both compute the same, and the registry, to convert a model.
        uses: &["azera-model-gguf", "azera-model-api", "azera-model-training", "azera-model-registry", "azera-breaker"],
    },
    Edge { package: "azera-files", uses: &[] },
    Edge { package: "azera-server-messages", uses: &[] },
    Edge { package: "azera-telemetry", uses: &["azera-types"] },
    Edge { package: "azera-model-remote", uses: &["azera-model-api", "azera-breaker", "azera-server-messages"] },
    Edge { package: "azera-model-image", uses: &[] },
    Edge { package: "azera-model-image-servers", uses: &["azera-model-image", "azera-breaker"] },
    Edge { package: "azera-personas", uses: &["azera-types"] },
    Edge { package: "azera-prompt", uses: &["azera-types", "azera-personas", "azera-model-api"] },
    // It uses the configuration only for the numbers of the `[mind]` section, and personas only in tests.
    Edge { package: "azera-affect", uses: &["azera-types", "azera-config", "azera-personas"] },
    Edge { package: "azera-pictures", uses: &["azera-affect"] },
    Edge { package: "azera-memory", uses: &["azera-types"] },
    Edge { package: "azera-memory-vault", uses: &["azera-types"] },
    Edge { package: "azera-import", uses: &["azera-types"] },
    Edge { package: "azera-memory-sled", uses: &["azera-types", "azera-memory"] },
    Edge { package: "azera-memory-vector", uses: &["azera-types", "azera-memory"] },
    Edge { package: "azera-memory-text", uses: &["azera-types", "azera-memory"] },
    Edge { package: "azera-memory-remote", uses: &["azera-memory", "azera-breaker"] },
    Edge {
        package: "azera-memory-redis",
        // Only its tests use the breaker.
        uses: &["azera-types", "azera-memory", "azera-memory-remote", "azera-breaker"],
    },
    Edge {
        package: "azera-memory-qdrant",
        // Only its tests use the local index and the breaker.
        uses: &["azera-types", "azera-memory", "azera-memory-remote", "azera-memory-vector", "azera-breaker"],
    },
    Edge { package: "azera-memory-blobs", uses: &["azera-types", "azera-memory"] },
    Edge { package: "azera-memory-backup", uses: &["azera-types", "azera-memory", "azera-memory-blobs"] },
    Edge { package: "azera-adapter", uses: &["azera-types"] },
    Edge { package: "azera-adapter-console", uses: &["azera-types", "azera-adapter", "azera-model-image"] },
    Edge { package: "azera-adapter-http", uses: &["azera-types", "azera-adapter", "azera-files"] },
    Edge { package: "azera-adapter-mcp", uses: &["azera-types", "azera-adapter"] },
    Edge { package: "azera-adapter-matrix", uses: &["azera-types", "azera-adapter", "azera-charts"] },
    Edge { package: "azera-fake-sim", uses: &["azera-types", "azera-adapter"] },
    Edge { package: "azera-charts", uses: &["azera-adapter"] },
    Edge { package: "azera-fake-discord", uses: &["azera-types"] },
    // Only its tests use the fake and the engines of speech.
    Edge {
        package: "azera-adapter-discord",
        uses: &[
            "azera-types",
            "azera-adapter",
            "azera-charts",
            "azera-fake-discord",
            "azera-files",
            "azera-voice-call-recordings",
            "azera-voice-discord",
            "azera-voice-room",
            "azera-voice-api",
            "azera-voice-engines",
            "azera-voice-recordings",
            "azera-voice-whisper",
        ],
    },
    Edge {
        package: "azera-engine",
        // It uses the configuration only for the numbers that places can tune, and the simulated platform and the folder of
        // recordings only in tests.
        uses: &[
            "azera-types",
            "azera-config",
            "azera-files",
            "azera-model-api",
            "azera-model-image",
            "azera-pictures",
            "azera-affect",
            "azera-prompt",
            "azera-memory",
            "azera-memory-vault",
            "azera-adapter",
            "azera-fake-sim",
            "azera-personas",
            "azera-voice-api",
            "azera-voice-call-recordings",
        ],
    },
    Edge {
        package: "azera-model-dataset",
        uses: &["azera-types", "azera-model-api", "azera-affect", "azera-personas", "azera-prompt", "azera-engine"],
    },
    Edge { package: "azera-voice-api", uses: &["azera-types"] },
    Edge { package: "azera-voice-spoken", uses: &[] },
    Edge { package: "azera-voice-opus", uses: &["azera-voice-api"] },
    Edge { package: "azera-voice-recordings", uses: &["azera-voice-api", "azera-voice-opus"] },
    Edge {
        package: "azera-voice-speech",
        uses: &["azera-types", "azera-voice-api", "azera-voice-opus", "azera-voice-recordings", "azera-voice-spoken"],
    },
    // Only its tests read recordings.
    Edge {
        package: "azera-voice-whisper",
        uses: &["azera-types", "azera-voice-api", "azera-model-gguf", "azera-voice-recordings"],
    },
    Edge { package: "azera-voice-engines", uses: &["azera-voice-api", "azera-voice-recordings"] },
    // Only its tests write Opus.
    Edge {
        package: "azera-voice-samples",
        uses: &["azera-files", "azera-voice-api", "azera-voice-recordings", "azera-voice-opus"],
    },
    Edge {
        package: "azera-voice-servers",
        uses: &[
            "azera-types",
            "azera-voice-api",
            "azera-voice-recordings",
            "azera-voice-whisper",
            "azera-breaker",
            "azera-server-messages",
        ],
    },
    Edge { package: "azera-voice-room", uses: &["azera-types", "azera-voice-api"] },
    Edge {
        package: "azera-voice-call",
        uses: &["azera-types", "azera-voice-api", "azera-voice-room", "azera-voice-spoken"],
    },
    // Only its tests write Opus.
    Edge {
        package: "azera-voice-call-recordings",
        uses: &["azera-types", "azera-files", "azera-voice-api", "azera-voice-opus"],
    },
    Edge {
        package: "azera-voice-discord",
        uses: &[
            "azera-types",
            "azera-voice-api",
            "azera-voice-call",
            "azera-voice-call-recordings",
            "azera-voice-opus",
            "azera-voice-recordings",
            "azera-voice-room",
        ],
    },
    Edge { package: "azera-tidy", uses: &["azera-config"] },
    Edge { package: "workspace-hack", uses: &[] },
    Edge { package: "azera", uses: &["*"] },
];

/// Heavy, native or platform crates, with the folders that may use each. They stay at the edges, so that the core
/// compiles and is tested without them, and each can be replaced.
pub const HELD: &[(&str, &[&str])] = &[
    ("ab_glyph", &["adapters/charts"]),
    ("anyhow", &["bot/app"]),
    ("candle-core", &["bot/models/training"]),
    ("clap", &["bot/app"]),
    ("crossterm", &["adapters/console"]),
    ("ebur128", &["voice/samples", "voice/servers"]),
    ("image", &["bot/models/image"]),
    ("llama-cpp-2", &["bot/models/llama"]),
    ("llama-cpp-sys-2", &["bot/models/llama"]),
    ("matrix-sdk", &["adapters/matrix"]),
    ("matrix-sdk-base", &["adapters/matrix"]),
    ("misaki-rs", &["voice/engines"]),
    ("opus2", &["voice/discord", "voice/opus"]),
    ("png", &["bot/models/image"]),
    ("poise", &["adapters/discord"]),
    ("qdrant-client", &["memory/qdrant"]),
    ("redis", &["memory/redis"]),
    ("reedline", &["adapters/console"]),
    ("rmcp", &["adapters/mcp"]),
    ("rten", &["voice/engines"]),
    ("rten-gemm", &["voice/whisper"]),
    ("rten-simd", &["voice/whisper"]),
    ("rten-tensor", &["voice/engines", "voice/whisper"]),
    ("rten-vecmath", &["voice/whisper"]),
    ("serenity", &["adapters/discord"]),
    ("sled", &["memory/sled"]),
    ("songbird", &["voice/discord"]),
    ("symphonia", &["voice/discord", "voice/recordings"]),
    ("tantivy", &["memory/text"]),
    ("tokio-tungstenite", &["adapters/discord", "bot/models/image-servers"]),
    ("tracing-subscriber", &["bot/app", "bot/telemetry"]),
];

/// The core: the code that works alike on every platform, and so names none.
pub const CORE: &[&str] = &[
    "bot/types",
    "bot/models/api",
    "bot/models/image",
    "bot/pictures",
    "bot/prompt",
    "bot/affect",
    "bot/engine",
    "memory/core",
    "adapters/api",
    "personas",
];

/// The crates that use no file and no socket, so that tests can simply call them.
pub const PURE: &[&str] = &[
    "bot/types",
    "bot/breaker",
    "bot/server-messages",
    "adapters/charts",
    "memory/import",
    "bot/prompt",
    "bot/affect",
    "bot/pictures",
    "personas",
    "voice/room",
    "voice/spoken",
];

/// The most lines that a source file may have. Longer files are too much to hold in mind.
pub const MAX_FILE_LINES: usize = 500;

/// Names that say nothing about the content.
pub const VAGUE_NAMES: &[&str] = &["util", "utils", "helper", "helpers", "manager", "managers", "misc", "common"];
