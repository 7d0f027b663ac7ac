//! The typed methods: which parameters belong to which result.

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use toolwire_protocol::{
    Method,
    caching::CacheKey,
    codec::RequestEnvelope,
    wire::{
        CacheHint, CallToolRequestParams, CompleteRequestParams, CompleteResult, DiscoverResult,
        GetPromptRequestParams, GetPromptResult, InputResponses, ListPromptsResult,
        ListResourceTemplatesResult, ListResourcesResult, ListTasksResult, ListToolsResult,
        PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResult, RequestParams, ResultType,
        TaskMetadata, Tool,
    },
};

use super::outcome::CallOutcome;
use crate::link::Subject;

/// A result that a [`CallBuilder`](super::CallBuilder) can wait for. It is implemented for the results of the
/// protocol and cannot be implemented elsewhere.
pub trait Operation: DeserializeOwned + Send + sealed::Sealed + 'static {
    /// The parameters of the method.
    type Params: Serialize + Send + Sync + 'static;
    /// The method.
    const METHOD: Method;

    #[doc(hidden)]
    fn result_type(&self) -> Option<&ResultType>;

    /// What the server said about keeping the result.
    #[doc(hidden)]
    fn hint(&self) -> CacheHint {
        CacheHint::default()
    }

    /// What the result is stored under.
    #[doc(hidden)]
    fn cache_key(_params: &Self::Params) -> Option<CacheKey> {
        None
    }

    /// What a request with these parameters is about.
    #[doc(hidden)]
    fn subject(_params: &Self::Params, envelope: RequestEnvelope) -> Subject {
        Subject::nothing(envelope)
    }

    /// The tool that is called, where the result may be that of a task.
    #[doc(hidden)]
    fn tool(_params: &Self::Params) -> Option<&str> {
        None
    }

    /// Whether the request says that it may become a task.
    #[doc(hidden)]
    fn wishes_for_task(_params: &Self::Params) -> bool {
        false
    }

    /// Says whether it may.
    #[doc(hidden)]
    fn wish_for_task(_params: &mut Self::Params, _wish: bool) {}

    /// The result that a task came to.
    #[doc(hidden)]
    fn of_task(_outcome: CallOutcome) -> Option<Self> {
        None
    }

    /// Says that the output schema of the tool marks the result as wrapped.
    #[doc(hidden)]
    fn mark_wrapped(&mut self) {}

    /// The tools on a page of their list.
    #[doc(hidden)]
    fn tools(&self) -> &[Tool] {
        &[]
    }

    /// Puts the answers of a round into the parameters of the next one.
    #[doc(hidden)]
    fn answer(_params: &mut Self::Params, _responses: Option<InputResponses>, _state: Option<String>) {}
}

pub(super) mod sealed {
    pub trait Sealed {}
}

/// A key with at most one parameter, of which all the cacheable methods are.
fn key(method: Method, name: &str, value: Option<&String>) -> Option<CacheKey> {
    let mut params = Map::new();
    if let Some(value) = value {
        params.insert(name.to_owned(), Value::from(value.clone()));
    }
    CacheKey::new(method, &params)
}

macro_rules! cacheable {
    () => {
        fn hint(&self) -> CacheHint {
            self.cache_hint()
        }
    };
}

macro_rules! paginated {
    () => {
        cacheable!();

        fn cache_key(params: &PaginatedRequestParams) -> Option<CacheKey> {
            key(Self::METHOD, "cursor", params.cursor.as_ref())
        }
    };
}

macro_rules! multi_round_trip {
    () => {
        fn answer(params: &mut Self::Params, responses: Option<InputResponses>, state: Option<String>) {
            params.input_responses = responses;
            params.request_state = state;
        }
    };
}

macro_rules! operation {
    ($($result:ident($params:ident) = $method:ident { $($more:tt)* })+) => {
        $(
            impl sealed::Sealed for $result {}

            impl Operation for $result {
                type Params = $params;
                const METHOD: Method = Method::$method;

                fn result_type(&self) -> Option<&ResultType> {
                    self.result_type.as_ref()
                }

                $($more)*
            }
        )+
    };
}

operation! {
    ListToolsResult(PaginatedRequestParams) = ListTools {
        paginated!();

        fn tools(&self) -> &[Tool] {
            &self.tools
        }
    }
    ListPromptsResult(PaginatedRequestParams) = ListPrompts {
        paginated!();
    }
    ListResourcesResult(PaginatedRequestParams) = ListResources {
        paginated!();
    }
    ListResourceTemplatesResult(PaginatedRequestParams) = ListResourceTemplates {
        paginated!();
    }
    ReadResourceResult(ReadResourceRequestParams) = ReadResource {
        cacheable!();
        multi_round_trip!();

        fn cache_key(params: &ReadResourceRequestParams) -> Option<CacheKey> {
            key(Self::METHOD, "uri", Some(&params.uri))
        }

        fn subject(params: &ReadResourceRequestParams, envelope: RequestEnvelope) -> Subject {
            Subject { envelope, name: Some(params.uri.as_str().into()), arguments: None }
        }
    }
    DiscoverResult(RequestParams) = Discover {
        cacheable!();

        fn cache_key(_params: &RequestParams) -> Option<CacheKey> {
            key(Self::METHOD, "", None)
        }
    }
    GetPromptResult(GetPromptRequestParams) = GetPrompt {
        multi_round_trip!();

        fn subject(params: &GetPromptRequestParams, envelope: RequestEnvelope) -> Subject {
            Subject { envelope, name: Some(params.name.as_str().into()), arguments: None }
        }
    }
    CompleteResult(CompleteRequestParams) = Complete {}
}

impl sealed::Sealed for ListTasksResult {}

impl Operation for ListTasksResult {
    type Params = PaginatedRequestParams;
    const METHOD: Method = Method::ListTasks;

    /// There are none where there is such a list.
    fn result_type(&self) -> Option<&ResultType> {
        None
    }
}

impl sealed::Sealed for CallOutcome {}

impl Operation for CallOutcome {
    type Params = CallToolRequestParams;
    const METHOD: Method = Method::CallTool;

    fn result_type(&self) -> Option<&ResultType> {
        self.as_result().result_type.as_ref()
    }

    fn subject(params: &CallToolRequestParams, envelope: RequestEnvelope) -> Subject {
        Subject { envelope, name: Some(params.name.as_str().into()), arguments: params.arguments.clone() }
    }

    fn tool(params: &CallToolRequestParams) -> Option<&str> {
        Some(&params.name)
    }

    fn wishes_for_task(params: &CallToolRequestParams) -> bool {
        params.task.is_some()
    }

    fn wish_for_task(params: &mut CallToolRequestParams, wish: bool) {
        if wish {
            // The caller may have said for how long it is to be kept.
            params.task.get_or_insert_with(TaskMetadata::new);
        } else {
            params.task = None;
        }
    }

    fn of_task(outcome: CallOutcome) -> Option<Self> {
        Some(outcome)
    }

    fn mark_wrapped(&mut self) {
        self.mark_wrapped();
    }

    multi_round_trip!();
}
