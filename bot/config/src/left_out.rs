//! Sections of servers that Azera works without. What is wrong in one of them leaves it out, and stops nothing else.

use crate::Config;
use crate::error::Problem;
use crate::images::{Images, ImagesKind};
use crate::rerank::RerankServer;
use crate::speech::{RecognitionServer, SpeechServer};
use crate::vision::VisionServer;

/// The sections that can be left out.
const OPTIONAL: [&str; 5] = ["rerank_server", "recognition_server", "speech_server", "images", "vision_server"];

/// A section that is left out.
#[derive(Debug, Clone, PartialEq)]
pub struct LeftOut {
    /// Its name.
    pub section: &'static str,
    /// The section to correct: this one, or another one that it needs.
    pub cause: &'static str,
    /// What is wrong there, in the order of its lines.
    pub problems: Vec<Problem>,
}

impl LeftOut {
    /// Returns what is wrong, in one line.
    pub fn why(&self) -> String {
        self.problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("; ")
    }
}

/// Returns true if a wrong value in this section stops nothing else.
pub(crate) fn is_optional(section: &str) -> bool {
    OPTIONAL.contains(&section)
}

impl Config {
    /// Returns the sections that are left out, because something in them is wrong. Their values are the defaults.
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// Returns the section of this name, if it is left out.
    pub fn left_out_named(&self, section: &str) -> Option<&LeftOut> {
        self.left_out.iter().find(|left_out| left_out.section == section)
    }

    /// Leaves sections out in which something is wrong.
    pub(crate) fn leave_out(&mut self, problems: Vec<(&'static str, Problem)>) {
        for (section, problem) in problems {
            match self.left_out.iter_mut().find(|left_out| left_out.section == section) {
                Some(left_out) => left_out.problems.push(problem),
                None => self.left_out.push(LeftOut { section, cause: section, problems: vec![problem] }),
            }
        }
        let sections: Vec<&str> = self.left_out.iter().map(|left_out| left_out.section).collect();
        for section in sections {
            match section {
                "rerank_server" => self.rerank_server = RerankServer::default(),
                "recognition_server" => self.recognition_server = RecognitionServer::default(),
                "speech_server" => self.speech_server = SpeechServer::default(),
                "images" => self.images = Images::default(),
                _ => self.vision_server = VisionServer::default(),
            }
        }
        self.draw_nothing_unchecked();
        self.left_out.iter_mut().for_each(|left_out| left_out.problems.sort());
    }

    /// Leaves out what draws if what is to look at its pictures is left out: nobody is shown a picture that was not checked.
    fn draw_nothing_unchecked(&mut self) {
        let Some(vision) = self.left_out_named("vision_server").and_then(|left_out| left_out.problems.first()) else {
            return;
        };
        if self.images.kind == ImagesKind::None {
            return;
        }
        let origin = vision.origin.clone();
        let message = "nothing is drawn while [vision_server], which looks at finished pictures, is wrong".to_owned();
        self.images = Images::default();
        let problems = vec![Problem { origin, message }];
        self.left_out.push(LeftOut { section: "images", cause: "vision_server", problems });
    }
}
