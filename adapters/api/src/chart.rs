/// Numbers of an answer, for platforms that can draw them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chart {
    /// The title, a few words long.
    pub title: String,
    /// A summary of one line.
    pub subtitle: String,
    /// Horizontal bars, from top to bottom.
    pub bars: Vec<Bar>,
    /// What belongs together with the title, from top to bottom.
    pub links: Vec<ChartLink>,
    /// The title of the columns.
    pub columns_title: String,
    /// Columns from left to right, in order of time.
    pub columns: Vec<Column>,
    /// The part of the answer's text that is not drawn, shown with the picture.
    pub caption: String,
    /// The colours.
    pub theme: Theme,
}

/// A horizontal bar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bar {
    /// Text before the bar.
    pub label: String,
    /// How far the bar is filled, from 0 to 100; more counts as 100.
    pub percent: u8,
    /// Text after the bar.
    pub value: String,
}

/// A line from the title of a chart to something that belongs together with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChartLink {
    /// Its name.
    pub label: String,
    /// How it belongs together, in a few words.
    pub words: String,
    /// How strong the line is, from 0 to 100; more counts as 100.
    pub percent: u8,
    /// True if nothing more is known than that both belong together.
    pub is_plain: bool,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Text below the column; may be empty.
    pub label: String,
    /// Height in proportion to the other columns.
    pub value: usize,
}

/// The colours of a chart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Theme {
    /// Light letters on a dark background.
    #[default]
    Dark,
    /// Dark letters on a light background.
    Light,
}

impl Theme {
    /// All themes.
    pub const ALL: [Self; 2] = [Self::Dark, Self::Light];

    /// Returns the name that people use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Dark => "dark",
            Self::Light => "light",
        }
    }

    /// Returns the theme with this name; the default for an empty name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "" => Some(Self::default()),
            name => Self::ALL.into_iter().find(|theme| theme.as_str() == name),
        }
    }
}
