//! The methods of the protocol, one Rust method each.

use std::collections::BTreeMap;

use serde::Serialize;
use toolwire_protocol::{
    Method, MethodName, RawJson,
    envelope::write_notification,
    wire::{
        CallToolRequestParams, CompleteRequestParams, CompleteResult, CompletionArgument,
        CompletionReference, DiscoverResult, GetPromptRequestParams, GetPromptResult, ListPromptsResult,
        ListResourceTemplatesResult, ListResourcesResult, ListTasksResult, ListToolsResult, LoggingLevel,
        NotificationParams, PaginatedRequestParams, Prompt, ReadResourceRequestParams, ReadResourceResult,
        RequestParams, Resource, ResourceTemplate, SetLevelRequestParams, Tool,
    },
};

use super::{CallBuilder, Client, pages::Pages, raw::Raw, typed_request::Options};
use crate::{error::Error, listen::ListenBuilder, task::TaskHandle};

impl Client {
    /// Calls a tool. `arguments` must serialise to a JSON object, or to `null` for none.
    ///
    /// A tool that fails is not an `Err`: see [`CallOutcome`](super::CallOutcome).
    pub fn call(&self, name: impl Into<String>, arguments: impl Serialize) -> CallBuilder {
        let arguments = object(Method::CallTool, &arguments);
        let params = arguments.map(|arguments| {
            let mut params = CallToolRequestParams::new(name);
            params.arguments = arguments;
            params
        });
        CallBuilder::new(self.clone(), params)
    }

    /// One page of the list of tools; [`tools`](Self::tools) goes through all of them.
    pub fn list_tools(&self) -> CallBuilder<ListToolsResult> {
        CallBuilder::new(self.clone(), Ok(PaginatedRequestParams::new()))
    }

    /// All tools, page by page.
    pub fn tools(&self) -> Pages<ListToolsResult> {
        Pages::new(self.clone())
    }

    /// All tools at once.
    pub async fn all_tools(&self) -> Result<Vec<Tool>, Error> {
        self.tools().collect().await
    }

    /// One page of the list of resources.
    pub fn list_resources(&self) -> CallBuilder<ListResourcesResult> {
        CallBuilder::new(self.clone(), Ok(PaginatedRequestParams::new()))
    }

    /// All resources, page by page.
    pub fn resources(&self) -> Pages<ListResourcesResult> {
        Pages::new(self.clone())
    }

    /// All resources at once.
    pub async fn all_resources(&self) -> Result<Vec<Resource>, Error> {
        self.resources().collect().await
    }

    /// One page of the list of resource templates.
    pub fn list_resource_templates(&self) -> CallBuilder<ListResourceTemplatesResult> {
        CallBuilder::new(self.clone(), Ok(PaginatedRequestParams::new()))
    }

    /// All resource templates, page by page.
    pub fn resource_templates(&self) -> Pages<ListResourceTemplatesResult> {
        Pages::new(self.clone())
    }

    /// All resource templates at once.
    pub async fn all_resource_templates(&self) -> Result<Vec<ResourceTemplate>, Error> {
        self.resource_templates().collect().await
    }

    /// One page of the list of prompts.
    pub fn list_prompts(&self) -> CallBuilder<ListPromptsResult> {
        CallBuilder::new(self.clone(), Ok(PaginatedRequestParams::new()))
    }

    /// All prompts, page by page.
    pub fn prompts(&self) -> Pages<ListPromptsResult> {
        Pages::new(self.clone())
    }

    /// All prompts at once.
    pub async fn all_prompts(&self) -> Result<Vec<Prompt>, Error> {
        self.prompts().collect().await
    }

    /// All tasks of this caller that a server of 2025-11-25 lists, page by page.
    ///
    /// # Errors
    /// [`NotInThisVersion`](crate::ErrorKind::NotInThisVersion) in all others, where a client keeps
    /// [tickets](TaskHandle::ticket).
    pub fn tasks(&self) -> Pages<ListTasksResult> {
        Pages::new(self.clone())
    }

    /// Goes on with a task, by the [ticket](TaskHandle::ticket) that its handle gave: after a restart of this
    /// program, or with another version of the protocol. Nothing is sent.
    ///
    /// # Errors
    /// When it is not a ticket, is one of another server, or there are no tasks in the version that is spoken.
    pub fn task(&self, ticket: &str) -> Result<TaskHandle, Error> {
        TaskHandle::resumed(self.clone(), ticket)
    }

    /// Reads a resource.
    pub fn read(&self, uri: impl Into<String>) -> CallBuilder<ReadResourceResult> {
        CallBuilder::new(self.clone(), Ok(ReadResourceRequestParams::new(uri)))
    }

    /// Fills in a prompt. `arguments` must serialise to an object of strings, or to `null` for none.
    pub fn get_prompt(
        &self,
        name: impl Into<String>,
        arguments: impl Serialize,
    ) -> CallBuilder<GetPromptResult> {
        let method = MethodName::from(Method::GetPrompt);
        let arguments = object(Method::GetPrompt, &arguments).and_then(|arguments| {
            let strings =
                arguments.map(|arguments| arguments.decode::<BTreeMap<String, String>>()).transpose();
            strings.map_err(|error| Error::invalid_params(&method, format_args!("arguments: {error}")))
        });
        let params = arguments.map(|arguments| {
            let mut params = GetPromptRequestParams::new(name);
            params.arguments = arguments;
            params
        });
        CallBuilder::new(self.clone(), params)
    }

    /// Suggests values for the argument of a prompt or the variable of a resource template.
    pub fn complete(
        &self,
        reference: impl Into<CompletionReference>,
        argument: impl Into<String>,
        typed: impl Into<String>,
    ) -> CallBuilder<CompleteResult> {
        let argument = CompletionArgument::new(argument, typed);
        CallBuilder::new(self.clone(), Ok(CompleteRequestParams::new(reference, argument)))
    }

    /// Asks a modern server again what it is and can do. The answer may be a stored one.
    pub fn discover(&self) -> CallBuilder<DiscoverResult> {
        CallBuilder::new(self.clone(), Ok(RequestParams::new()))
    }

    /// Asks a legacy server whether it is there.
    ///
    /// # Errors
    /// [`NotInThisVersion`](crate::ErrorKind::NotInThisVersion) in the modern era.
    pub async fn ping(&self) -> Result<(), Error> {
        self.check(Method::Ping)?;
        self.ask_once(Method::Ping, &RequestParams::new(), Options::default()).await.map(drop)
    }

    /// Tells a legacy server which log messages to send.
    ///
    /// # Errors
    /// [`NotInThisVersion`](crate::ErrorKind::NotInThisVersion) in the modern era, where each request says it:
    /// [`ClientBuilder::log_level`](crate::ClientBuilder::log_level) and [`CallBuilder::log_level`].
    pub async fn set_log_level(&self, level: LoggingLevel) -> Result<(), Error> {
        self.check(Method::SetLevel)?;
        let params = SetLevelRequestParams::new(level);
        self.ask_once(Method::SetLevel, &params, Options::default()).await?;
        self.host().restoration.keep_log_level(level);
        Ok(())
    }

    /// Tells a legacy server that the roots have changed.
    ///
    /// # Errors
    /// [`NotInThisVersion`](crate::ErrorKind::NotInThisVersion) in the modern era, where a server asks each time.
    pub async fn roots_changed(&self) -> Result<(), Error> {
        self.check(Method::RootsListChanged)?;
        self.notify(Method::RootsListChanged, &NotificationParams::new()).await
    }

    /// Listens to changes, in either era. Say to which, then await it.
    ///
    /// ```
    /// # use toolwire_client::{Change, Client, Error};
    /// # async fn example(client: Client) -> Result<(), Error> {
    /// let mut changes = client.listen().tools().resource("file:///notes.txt").await?;
    /// while let Some(change) = changes.next().await {
    ///     println!("{change:?}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn listen(&self) -> ListenBuilder {
        ListenBuilder::new(self.clone())
    }

    /// Single exchanges as they are on the wire: no types, no cache, no rounds.
    pub fn raw(&self) -> Raw {
        Raw::new(self.clone())
    }

    /// Ends the connection for all clones: calls under way fail, what was sent is written, and a child process
    /// is given time to end.
    ///
    /// # Errors
    /// None at present; a transport that can fail to close will tell it here.
    pub async fn close(self) -> Result<(), Error> {
        self.link().close().await;
        Ok(())
    }

    pub(super) async fn notify<P: Serialize + ?Sized>(
        &self,
        method: impl Into<MethodName>,
        params: &P,
    ) -> Result<(), Error> {
        let method = method.into();
        let message = write_notification(&method, params);
        let message = message.map_err(|error| Error::invalid_params(&method, error))?;
        self.requester().notify(&method, message).await
    }
}

/// Serialises what must be an object; `null` is none.
fn object<T: Serialize>(method: Method, value: &T) -> Result<Option<RawJson>, Error> {
    let raw = RawJson::of(value).map_err(|error| Error::invalid_params(&method.into(), error))?;
    match raw.text() {
        "null" => Ok(None),
        _ if raw.is_object() => Ok(Some(raw)),
        _ => Err(Error::invalid_params(&method.into(), "arguments must be a JSON object")),
    }
}
