//! One argument of a tool: what it must be, and its part of the schema.

use serde_json::{Value, json};

/// One argument.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) kind: FieldKind,
    pub(crate) required: bool,
    /// Empty on the fields that `instructions` describe once for all tools.
    pub(crate) description: &'static str,
    /// False: accepted, but not in the schema.
    pub(crate) listed: bool,
}

/// What a value must be.
#[derive(Debug)]
pub(crate) enum FieldKind {
    /// Up to so many bytes of UTF-8.
    Text {
        bytes_max: usize,
        default: Option<&'static str>,
    },
    /// One of a closed list; aliases are accepted, but not listed.
    Word {
        allowed: fn() -> Vec<&'static str>,
        aliases: &'static [(&'static str, &'static str)],
        default: Option<&'static str>,
    },
    Integer {
        min: i64,
        max: i64,
        default: Option<i64>,
    },
    Number {
        min: f64,
        max: f64,
        default: Option<f64>,
    },
    Flag {
        default: bool,
    },
    /// `empty` says whether leaving it out means the empty list.
    Texts {
        items_max: usize,
        bytes_max: usize,
        empty: bool,
    },
    /// As Texts, of a closed list.
    Words {
        items_max: usize,
        allowed: fn() -> Vec<&'static str>,
    },
    /// Steps of a walk: an integer, where negative means 0 and null means as deep as allowed.
    Depth,
    /// A UUID.
    Id,
    /// Several of them.
    Ids {
        items_max: usize,
    },
    Time,
}

impl Field {
    /// Whether a value says what leaving the field away says.
    pub(crate) fn is_default(&self, value: &Value) -> bool {
        match &self.kind {
            FieldKind::Text { default, .. } | FieldKind::Word { default, .. } => {
                default.is_some_and(|default| value.as_str() == Some(default))
            }
            FieldKind::Integer { default, .. } => default.is_some_and(|default| value.as_i64() == Some(default)),
            FieldKind::Number { default, .. } => default.is_some_and(|default| value.as_f64() == Some(default)),
            FieldKind::Flag { default } => value.as_bool() == Some(*default),
            FieldKind::Texts { empty: true, .. } | FieldKind::Words { .. } => {
                value.as_array().is_some_and(Vec::is_empty)
            }
            FieldKind::Texts { empty: false, .. }
            | FieldKind::Depth
            | FieldKind::Id
            | FieldKind::Ids { .. }
            | FieldKind::Time => false,
        }
    }

    pub(crate) const fn new(name: &'static str, kind: FieldKind, description: &'static str) -> Self {
        Self {
            name,
            kind,
            required: false,
            description,
            listed: true,
        }
    }

    pub(crate) const fn required(name: &'static str, kind: FieldKind, description: &'static str) -> Self {
        Self {
            name,
            kind,
            required: true,
            description,
            listed: true,
        }
    }

    pub(crate) const fn unlisted(name: &'static str, kind: FieldKind) -> Self {
        Self {
            name,
            kind,
            required: false,
            description: "",
            listed: false,
        }
    }

    /// Its part of the schema: primitives, enums and defaults only.
    pub(crate) fn schema(&self) -> Value {
        let mut schema = match &self.kind {
            // An empty default says nothing that the missing `required` does not say.
            FieldKind::Text { default, .. } => with_default(
                json!({"type": "string"}),
                default.filter(|text| !text.is_empty()).map(Value::from),
            ),
            FieldKind::Word { allowed, default, .. } => {
                with_default(json!({"type": "string", "enum": allowed()}), default.map(Value::from))
            }
            // Limits are told by memory_capabilities and by the refusal of what is outside: two numbers less on every field.
            FieldKind::Integer { default, .. } => with_default(json!({"type": "integer"}), default.map(Value::from)),
            FieldKind::Number { default, .. } => with_default(json!({"type": "number"}), default.map(Value::from)),
            FieldKind::Flag { default } => json!({"type": "boolean", "default": default}),
            FieldKind::Texts { empty, .. } => with_default(
                json!({"type": "array", "items": {"type": "string"}}),
                empty.then(|| json!([])),
            ),
            FieldKind::Words { allowed, .. } => {
                json!({"type": "array", "items": {"type": "string", "enum": allowed()}, "default": []})
            }
            FieldKind::Depth => json!({"type": "integer"}),
            FieldKind::Ids { .. } => json!({"type": "array", "items": {"type": "string"}}),
            FieldKind::Id | FieldKind::Time => json!({"type": "string"}),
        };
        if !self.description.is_empty()
            && let Some(fields) = schema.as_object_mut()
        {
            fields.insert("description".into(), self.description.into());
        }
        schema
    }
}

fn with_default(mut schema: Value, default: Option<Value>) -> Value {
    if let (Some(fields), Some(default)) = (schema.as_object_mut(), default) {
        fields.insert("default".into(), default);
    }
    schema
}
