//! Which of the attributes is being expanded.

/// The attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Tool,
    Prompt,
    /// A resource or a template: the URI decides.
    Resource,
}

impl Kind {
    /// The attribute of this name.
    pub(crate) fn of(name: &str) -> Option<Self> {
        [Self::Tool, Self::Prompt, Self::Resource].into_iter().find(|kind| kind.noun() == name)
    }

    /// The word for it in messages; it is also the attribute's name.
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
        }
    }

    /// The type of the route it makes, and the function that makes it.
    ///
    /// The latter is also the method that adds the route to a group.
    pub(crate) fn route(self, is_template: bool) -> (&'static str, &'static str) {
        match self {
            Self::Tool => ("ToolRoute", "tool"),
            Self::Prompt => ("PromptRoute", "prompt"),
            Self::Resource if is_template => ("TemplateRoute", "template"),
            Self::Resource => ("ResourceRoute", "resource"),
        }
    }

    /// The options it knows.
    pub(crate) fn options(self) -> &'static [&'static str] {
        match self {
            Self::Tool => &[
                "name",
                "title",
                "description",
                "read_only",
                "destructive",
                "idempotent",
                "open_world",
                "lenient",
                "scopes",
                "task",
                "task_after",
                "task_required",
                "crate",
            ],
            Self::Prompt => &["name", "title", "description", "scopes", "crate"],
            Self::Resource => &["name", "title", "description", "mime_type", "scopes", "crate"],
        }
    }
}
