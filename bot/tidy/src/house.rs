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
    Edge { package: "azera-gguf", uses: &[] },
    Edge { package: "azera-ledger", uses: &["azera-gguf"] },
    Edge { package: "azera-hearth", uses: &["azera-gguf"] },
    Edge { package: "azera-model", uses: &["azera-types"] },
    // The trainer for its tests alone: both compute the same.
    Edge { package: "azera-llama", uses: &["azera-gguf", "azera-model", "azera-hearth"] },
    Edge { package: "azera-breaker", uses: &[] },
    Edge { package: "azera-remote", uses: &["azera-model", "azera-breaker"] },
    Edge { package: "azera-personas", uses: &["azera-types"] },
    Edge { package: "azera-prompt", uses: &["azera-types", "azera-personas", "azera-model"] },
    // The configuration for the numbers of its [mind] section alone, personas for its tests alone.
    Edge { package: "azera-mind", uses: &["azera-types", "azera-config", "azera-personas"] },
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
    Edge { package: "azera-adapter-sim", uses: &["azera-types", "azera-adapter"] },
    Edge { package: "azera-cards", uses: &["azera-adapter"] },
    Edge { package: "azera-discord-peer", uses: &["azera-types"] },
    // The peer is for its tests alone.
    Edge {
        package: "azera-adapter-discord",
        uses: &["azera-types", "azera-adapter", "azera-cards", "azera-discord-peer"],
    },
    Edge {
        package: "azera-chat",
        // The configuration for the numbers that places tune alone, the sim platform for its tests alone.
        uses: &[
            "azera-types",
            "azera-config",
            "azera-model",
            "azera-mind",
            "azera-prompt",
            "azera-memory",
            "azera-adapter",
            "azera-adapter-sim",
            "azera-personas",
        ],
    },
    Edge {
        package: "azera-curriculum",
        uses: &["azera-types", "azera-model", "azera-mind", "azera-personas", "azera-prompt", "azera-chat"],
    },
    Edge { package: "azera-tidy", uses: &["azera-config"] },
    Edge { package: "workspace-hack", uses: &[] },
    Edge { package: "azera", uses: &["*"] },
];

/// Heavy, native or platform crates, and the folders that may use each: they sit at the edges, so that the core
/// compiles and is tested without them, and can be changed for others.
pub const HELD: &[(&str, &[&str])] = &[
    ("ab_glyph", &["bot/cards"]),
    ("anyhow", &["bot/app"]),
    ("candle-core", &["bot/hearth"]),
    ("clap", &["bot/app"]),
    ("crossterm", &["adapters/console"]),
    ("llama-cpp-2", &["bot/llama"]),
    ("llama-cpp-sys-2", &["bot/llama"]),
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
pub const CORE: &[&str] =
    &["bot/types", "bot/model", "bot/prompt", "bot/mind", "bot/chat", "memory/core", "adapters/api", "personas"];

/// What reads no file and no socket, so that it can be tested by calling it.
pub const PURE: &[&str] = &["bot/types", "bot/breaker", "bot/cards", "bot/prompt", "bot/mind", "personas"];

/// Lines a source file may have: more do not fit into a head.
pub const MAX_FILE_LINES: usize = 500;

/// Names that say nothing about what is inside.
pub const VAGUE_NAMES: &[&str] = &["util", "utils", "helper", "helpers", "manager", "managers", "misc", "common"];
