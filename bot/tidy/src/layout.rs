/// A crate, and the crates of this workspace it may use.
#[derive(Debug, Clone, Copy)]
pub struct Edge {
    /// The package's name.
    pub package: &'static str,
    /// What it may use; `*` is everything.
    pub uses: &'static [&'static str],
}

/// Every crate of the workspace, from the ground up. Adapters, core, memory and models meet only through contracts;
/// the binary alone wires the parts.
pub const EDGES: &[Edge] = &[
    Edge { package: "azera-types", uses: &[] },
    Edge { package: "azera-config", uses: &[] },
    Edge { package: "azera-model-gguf", uses: &[] },
    Edge { package: "azera-model-registry", uses: &["azera-model-gguf"] },
    Edge { package: "azera-model-training", uses: &["azera-model-gguf"] },
    Edge { package: "azera-model-api", uses: &["azera-types"] },
    // The trainer for its tests alone: both compute the same.
    Edge { package: "azera-model-llama", uses: &["azera-model-gguf", "azera-model-api", "azera-model-training"] },
    Edge { package: "azera-breaker", uses: &[] },
    Edge { package: "azera-model-remote", uses: &["azera-model-api", "azera-breaker"] },
    Edge { package: "azera-personas", uses: &["azera-types"] },
    Edge { package: "azera-prompt", uses: &["azera-types", "azera-personas", "azera-model-api"] },
    // The configuration for the numbers of its [mind] section alone, personas for its tests alone.
    Edge { package: "azera-affect", uses: &["azera-types", "azera-config", "azera-personas"] },
    Edge { package: "azera-memory", uses: &["azera-types"] },
    Edge { package: "azera-memory-sled", uses: &["azera-types", "azera-memory"] },
    Edge { package: "azera-memory-vector", uses: &["azera-types", "azera-memory"] },
    Edge { package: "azera-memory-text", uses: &["azera-types", "azera-memory"] },
    Edge { package: "azera-memory-remote", uses: &["azera-memory", "azera-breaker"] },
    Edge {
        package: "azera-memory-redis",
        // The breaker for its tests' patience alone.
        uses: &["azera-types", "azera-memory", "azera-memory-remote", "azera-breaker"],
    },
    Edge {
        package: "azera-memory-qdrant",
        // The local index and the breaker for its tests alone.
        uses: &["azera-types", "azera-memory", "azera-memory-remote", "azera-memory-vector", "azera-breaker"],
    },
    Edge { package: "azera-memory-backup", uses: &["azera-types", "azera-memory"] },
    Edge { package: "azera-adapter", uses: &["azera-types"] },
    Edge { package: "azera-adapter-console", uses: &["azera-types", "azera-adapter"] },
    Edge { package: "azera-adapter-matrix", uses: &["azera-types", "azera-adapter"] },
    Edge { package: "azera-fake-sim", uses: &["azera-types", "azera-adapter"] },
    Edge { package: "azera-charts", uses: &["azera-adapter"] },
    Edge { package: "azera-fake-discord", uses: &["azera-types"] },
    // The peer is for its tests alone.
    Edge {
        package: "azera-adapter-discord",
        uses: &["azera-types", "azera-adapter", "azera-charts", "azera-fake-discord"],
    },
    Edge {
        package: "azera-engine",
        // The configuration for the numbers that places tune alone, the sim platform for its tests alone.
        uses: &[
            "azera-types",
            "azera-config",
            "azera-model-api",
            "azera-affect",
            "azera-prompt",
            "azera-memory",
            "azera-adapter",
            "azera-fake-sim",
            "azera-personas",
        ],
    },
    Edge {
        package: "azera-model-dataset",
        uses: &["azera-types", "azera-model-api", "azera-affect", "azera-personas", "azera-prompt", "azera-engine"],
    },
    Edge { package: "azera-tidy", uses: &["azera-config"] },
    Edge { package: "workspace-hack", uses: &[] },
    Edge { package: "azera", uses: &["*"] },
];

/// Heavy, native or platform crates, and the folders that may use each: they sit at the edges, so that the core
/// compiles and is tested without them, and can be changed for others.
pub const HELD: &[(&str, &[&str])] = &[
    ("ab_glyph", &["adapters/charts"]),
    ("anyhow", &["bot/app"]),
    ("candle-core", &["bot/models/training"]),
    ("clap", &["bot/app"]),
    ("crossterm", &["adapters/console"]),
    ("llama-cpp-2", &["bot/models/llama"]),
    ("llama-cpp-sys-2", &["bot/models/llama"]),
    ("matrix-sdk", &["adapters/matrix"]),
    ("matrix-sdk-base", &["adapters/matrix"]),
    ("poise", &["adapters/discord"]),
    ("qdrant-client", &["memory/qdrant"]),
    ("qdrant-edge", &["memory/vector"]),
    ("redis", &["memory/redis"]),
    ("reedline", &["adapters/console"]),
    ("serenity", &["adapters/discord"]),
    ("sled", &["memory/sled"]),
    ("songbird", &["voice/discord"]),
    ("tantivy", &["memory/text"]),
    ("tracing-subscriber", &["bot/app"]),
];

/// The core: what works alike on every platform, and so names none.
pub const CORE: &[&str] = &[
    "bot/types",
    "bot/models/api",
    "bot/prompt",
    "bot/affect",
    "bot/engine",
    "memory/core",
    "adapters/api",
    "personas",
];

/// What reads no file and no socket, so that it can be tested by calling it.
pub const PURE: &[&str] = &["bot/types", "bot/breaker", "adapters/charts", "bot/prompt", "bot/affect", "personas"];

/// Lines a source file may have: more do not fit into a head.
pub const MAX_FILE_LINES: usize = 500;

/// Names that say nothing about what is inside.
pub const VAGUE_NAMES: &[&str] = &["util", "utils", "helper", "helpers", "manager", "managers", "misc", "common"];
