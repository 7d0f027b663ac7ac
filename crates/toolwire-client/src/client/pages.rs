//! Going through all pages of a list.

use std::{
    collections::{HashSet, VecDeque},
    fmt,
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures_core::Stream;
use toolwire_protocol::{
    ErrorCode,
    wire::{
        ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListTasksResult,
        ListToolsResult, PaginatedRequestParams, Prompt, Resource, ResourceTemplate, Task, Tool,
    },
};
use toolwire_transport::BoxFuture;

use super::{
    Client,
    list_budget::ListBudget,
    operation::Operation,
    typed_request::{Options, Performed},
};
use crate::error::{Delivery, Error, ErrorKind};

/// A page of a list. It is implemented for the list results of the protocol.
pub trait PageOf: Operation<Params = PaginatedRequestParams> {
    /// What is listed.
    type Item: Send + Unpin + 'static;

    #[doc(hidden)]
    fn split(self) -> (Vec<Self::Item>, Option<String>);
}

macro_rules! page_of {
    ($($page:ident.$items:ident: $item:ident),+ $(,)?) => {
        $(impl PageOf for $page {
            type Item = $item;

            fn split(self) -> (Vec<$item>, Option<String>) {
                (self.$items, self.next_cursor)
            }
        })+
    };
}

page_of! {
    ListToolsResult.tools: Tool,
    ListResourcesResult.resources: Resource,
    ListResourceTemplatesResult.resource_templates: ResourceTemplate,
    ListPromptsResult.prompts: Prompt,
    ListTasksResult.tasks: Task,
}

/// A stream over a whole list, which fetches the next page when the last one is used up.
///
/// It ends after the first error. A server that sends the same cursor twice, or more pages, items or bytes than the
/// [`ClientLimits`](crate::ClientLimits) allow for one list, is such an error.
///
/// ```
/// # use toolwire_client::{Client, Error};
/// # async fn example(client: Client) -> Result<(), Error> {
/// let mut tools = client.tools();
/// while let Some(tool) = tools.next().await {
///     println!("{}", tool?.name);
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing is fetched until it is polled"]
pub struct Pages<T: PageOf> {
    client: Client,
    fresh: bool,
    items: VecDeque<T::Item>,
    seen: HashSet<String>,
    budget: ListBudget,
    state: State<T>,
}

/// A page that is being fetched, and what it leaves of the budget.
type Fetch<T> = BoxFuture<'static, Result<(T, ListBudget), Error>>;

enum State<T> {
    /// The next page begins here; the first one nowhere.
    Next(Option<String>),
    Fetching(Fetch<T>),
    Done,
}

impl<T: PageOf> Pages<T> {
    pub(super) fn new(client: Client) -> Self {
        let budget = ListBudget::new(&client.settings().limits);
        Self {
            client,
            fresh: false,
            items: VecDeque::new(),
            seen: HashSet::new(),
            budget,
            state: State::Next(None),
        }
    }

    /// Asks the server even if stored pages are still good.
    pub const fn fresh(mut self) -> Self {
        self.fresh = true;
        self
    }

    /// The next item; `None` after the last.
    ///
    /// # Cancel safety
    /// A future that is dropped before it is ready has taken no item.
    pub async fn next(&mut self) -> Option<Result<T::Item, Error>> {
        poll_fn(|cx| self.poll(cx)).await
    }

    /// All items at once.
    pub async fn collect(mut self) -> Result<Vec<T::Item>, Error> {
        let mut all = Vec::new();
        while let Some(item) = self.next().await {
            all.push(item?);
        }
        Ok(all)
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T::Item, Error>>> {
        loop {
            if let Some(item) = self.items.pop_front() {
                return Poll::Ready(Some(Ok(item)));
            }
            match &mut self.state {
                State::Done => return Poll::Ready(None),
                State::Next(cursor) => {
                    let cursor = cursor.take();
                    self.state = match self.check(cursor.as_deref()) {
                        Ok(()) => State::Fetching(self.fetch(cursor)),
                        Err(error) => return self.fail(error),
                    };
                }
                State::Fetching(page) => match ready!(page.as_mut().poll(cx)) {
                    Ok((page, budget)) => {
                        self.budget = budget;
                        if let Err(error) = self.turn(page) {
                            return self.fail(error);
                        }
                    }
                    Err(error) => return self.fail(error),
                },
            }
        }
    }

    /// Guards against a list without an end.
    fn check(&mut self, cursor: Option<&str>) -> Result<(), Error> {
        let Some(cursor) = cursor else { return Ok(()) };
        let most = self.client.settings().limits.list_pages;
        let error = |text| Error::new(ErrorKind::TooManyPages, Delivery::Rejected, text);
        if self.seen.len() + 1 >= most {
            let text = format!("the answer to {} goes on after {most} pages", T::METHOD);
            return Err(error(text).with_limit("list_pages"));
        }
        if !self.seen.insert(cursor.to_owned()) {
            return Err(error(format!(
                "the pages of {} go round in a circle at cursor {cursor:?}",
                T::METHOD
            )));
        }
        Ok(())
    }

    fn fetch(&self, cursor: Option<String>) -> Fetch<T> {
        let client = self.client.clone();
        let budget = self.budget;
        let mut options = Options { fresh: self.fresh, budget: Some(Box::new(budget)), ..Options::default() };
        Box::pin(async move {
            let mut params = PaginatedRequestParams::new();
            let first = cursor.is_none();
            params.cursor = cursor;
            let page = client.begin::<T>(&mut params, &mut options).await.and_then(Performed::done);
            if !first && is_bad_cursor(&page) {
                // The pages that are stored lead to a cursor that the server no longer knows.
                client.host().with_cache(|cache, _| cache.drop_pages(T::METHOD));
            }
            page.map(|page| (page, options.budget.map_or(budget, |left| *left)))
        })
    }

    fn turn(&mut self, page: T) -> Result<(), Error> {
        let (items, next) = page.split();
        self.budget.charge_items(T::METHOD, items.len())?;
        self.items = items.into();
        // An empty cursor is one like any other; only without one it is over.
        self.state = next.map_or(State::Done, |cursor| State::Next(Some(cursor)));
        Ok(())
    }

    fn fail(&mut self, error: Error) -> Poll<Option<Result<T::Item, Error>>> {
        self.state = State::Done;
        Poll::Ready(Some(Err(error)))
    }
}

fn is_bad_cursor<T>(page: &Result<T, Error>) -> bool {
    let code = page.as_ref().err().and_then(|error| error.rpc()).map(|error| error.code);
    code == Some(ErrorCode::INVALID_PARAMS)
}

impl<T: PageOf + Unpin> Stream for Pages<T> {
    type Item = Result<T::Item, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll(cx)
    }
}

impl<T: PageOf> fmt::Debug for Pages<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages").field("method", &T::METHOD).finish_non_exhaustive()
    }
}
