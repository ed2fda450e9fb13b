/// Numbers that an answer tells, for platforms that can draw them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chart {
    /// What it is about, in a few words.
    pub title: String,
    /// What there is to say about it in one line.
    pub subtitle: String,
    /// Bars, one below the other.
    pub bars: Vec<Bar>,
    /// What the columns are.
    pub columns_title: String,
    /// Columns, side by side; the first belongs to the time before the second.
    pub columns: Vec<Column>,
    /// What of the answer's text is not drawn, for who sees the picture.
    pub caption: String,
    /// How it is to look.
    pub theme: Theme,
}

/// A bar of a chart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bar {
    /// What stands before it.
    pub label: String,
    /// How far it is filled, from 0 to 100; more counts as 100.
    pub percent: u8,
    /// What stands behind it.
    pub value: String,
}

/// A column of a chart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// What stands under it; empty for nothing.
    pub label: String,
    /// How high it is, in proportion to the others.
    pub value: usize,
}

/// How a chart looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Theme {
    /// Light letters on dark.
    #[default]
    Dark,
    /// Dark letters on light.
    Light,
}

impl Theme {
    /// All there are.
    pub const ALL: [Self; 2] = [Self::Dark, Self::Light];

    /// What people call it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Dark => "dark",
            Self::Light => "light",
        }
    }

    /// The theme that people call so; the default if they call none.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "" => Some(Self::default()),
            name => Self::ALL.into_iter().find(|theme| theme.as_str() == name),
        }
    }
}
