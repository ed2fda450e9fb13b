//! Reads the knowledge graph, by the names of everything that anyone said.

use azera_adapter::{MemoryReader, Reading, ShownEntity};
use azera_memory::{Calendar, Entity, EntityLink, MAX_SUGGESTED, Memory, ReadScope};
use azera_types::{Clock, PlatformId, TimeZone, Timestamp};

use super::{IDS, Looking};
use crate::oracle::word;
use crate::world::PEOPLE;

/// Formats what the graph says of an entity.
fn describe_entity(entity: &Entity) -> String {
    let link = |link: &EntityLink| {
        let phrase = link.label.phrase(&link.subject, &link.object);
        format!("{phrase} [{}] {:?} {:?}\n", link.words, link.until, link.sources)
    };
    let links: String = entity.links.iter().map(link).collect();
    format!("{} {:?} {:?} {}\n{links}", entity.name, entity.kind, entity.other_names, entity.mentions)
}

impl Looking<'_> {
    /// Asks the reader of memories for the person's own name, and for the names of all secrets there are.
    pub(super) async fn read_entities(&mut self, platform: &PlatformId, at: &Reading) {
        let azera = &self.engine.azera;
        let mut entities = azera.entities(platform, at.clone(), PEOPLE[self.person].1.to_owned()).await.unwrap();
        let secrets = self.engine.watch.oracle().secrets.len();
        for secret in (0..secrets).rev().take(IDS) {
            for name in [format!("Mia-{}", word(secret, false)), format!("Mia-{}", word(secret, true))] {
                entities.extend(azera.entities(platform, at.clone(), name).await.unwrap());
            }
        }
        let relations = |one: &ShownEntity| {
            let said =
                one.relations.iter().map(|it| format!("{} {} {:?} {:?}", it.said, it.other, it.until, it.sources));
            format!("{} {:?}\n{}", one.name, one.other_names, said.collect::<Vec<_>>().join("\n"))
        };
        let names = azera.graph_names(platform, at.clone()).await.unwrap();
        self.saw("MemoryReader::graph_names", format!("{:?}", names.most));
        self.saw("MemoryReader::entities", entities.iter().map(relations).collect::<Vec<_>>().join("\n"));
    }

    /// Reads the graph: every name that may be read, and the names of all secrets there are.
    pub(super) fn read_graph(&mut self, read_scope: &ReadScope) {
        let engine = self.engine;
        let memory: &Memory = &engine.memory;
        let names = read!(self, memory.graph().names(read_scope), |found| format!("{:?}", found.most));
        read!(self, memory.graph().new_names(read_scope, Timestamp::MIN, MAX_SUGGESTED), |found| {
            found.names.iter().map(|new| format!("{} {:?} {}\n", new.name, new.relation, new.memory)).collect()
        });
        let secrets = engine.watch.oracle().secrets.len();
        let secret = |secret| [format!("Mia-{}", word(secret, false)), format!("Mia-{}", word(secret, true))];
        let known = names.most.into_iter().map(|(name, _)| name);
        let calendar = Calendar::new(engine.clock.now(), TimeZone::UTC);
        for name in known.chain((0..secrets).rev().take(IDS).flat_map(secret)) {
            read!(self, memory.graph().about(read_scope, &name, &calendar), |found| found
                .iter()
                .map(describe_entity)
                .collect());
        }
        for name in (0..secrets).rev().take(IDS).flat_map(secret) {
            read!(self, memory.graph().reach(read_scope, &name, Timestamp::MAX), |found| format!("{}", found.len()));
        }
    }
}
