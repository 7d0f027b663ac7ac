//! The official examples of 2026-07-28: each parses into our type of the same name and is written back
//! as equal JSON.
//!
//! The examples are not part of this repository. `TOOLWIRE_SPEC` names the folder that holds one folder
//! per revision, each with its `schema.json`.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use toolwire_protocol::{RpcError, wire::*};

/// Fewer examples than this would mean that we look in the wrong place.
const AT_LEAST: usize = 129;

/// Parses a text and serialises what came out.
type RoundTrip = fn(&str) -> serde_json::Result<Value>;

/// Where in the example the part lies that has a type, and its round trip.
struct Case {
    part: &'static str,
    round_trip: RoundTrip,
}

fn case<T: DeserializeOwned + Serialize>(part: &'static str) -> Case {
    Case { part, round_trip: |text| serde_json::to_value(serde_json::from_str::<T>(text)?) }
}

fn whole<T: DeserializeOwned + Serialize>() -> Case {
    case::<T>("")
}

fn params<T: DeserializeOwned + Serialize>() -> Case {
    case::<T>("/params")
}

fn result<T: DeserializeOwned + Serialize>() -> Case {
    case::<T>("/result")
}

/// The one table: the name of a folder and what its examples are.
fn case_of(name: &str) -> Option<Case> {
    content(name).or_else(|| feature(name)).or_else(|| client_feature(name)).or_else(|| base(name))
}

fn content(name: &str) -> Option<Case> {
    Some(match name {
        "AudioContent" => whole::<AudioContent>(),
        "BlobResourceContents" => whole::<BlobResourceContents>(),
        "EmbeddedResource" => whole::<EmbeddedResource>(),
        "ImageContent" => whole::<ImageContent>(),
        "ResourceLink" => whole::<ResourceLink>(),
        "TextContent" => whole::<TextContent>(),
        "TextResourceContents" => whole::<TextResourceContents>(),
        "ToolResultContent" => whole::<ToolResultContent>(),
        "ToolUseContent" => whole::<ToolUseContent>(),
        _ => return None,
    })
}

/// Tools, resources, prompts and completion.
fn feature(name: &str) -> Option<Case> {
    Some(match name {
        "CallToolRequest" => params::<CallToolRequestParams>(),
        "CallToolRequestParams" => whole::<CallToolRequestParams>(),
        "CallToolResult" => whole::<CallToolResult>(),
        "CallToolResultResponse" => result::<CallToolResult>(),
        "CompleteRequest" => params::<CompleteRequestParams>(),
        "CompleteRequestParams" => whole::<CompleteRequestParams>(),
        "CompleteResult" => whole::<CompleteResult>(),
        "CompleteResultResponse" => result::<CompleteResult>(),
        "GetPromptRequest" => params::<GetPromptRequestParams>(),
        "GetPromptRequestParams" => whole::<GetPromptRequestParams>(),
        "GetPromptResult" => whole::<GetPromptResult>(),
        "GetPromptResultResponse" => result::<GetPromptResult>(),
        "ListPromptsRequest"
        | "ListResourceTemplatesRequest"
        | "ListResourcesRequest"
        | "ListToolsRequest" => params::<PaginatedRequestParams>(),
        "ListPromptsResult" => whole::<ListPromptsResult>(),
        "ListPromptsResultResponse" => result::<ListPromptsResult>(),
        "ListResourceTemplatesResult" => whole::<ListResourceTemplatesResult>(),
        "ListResourceTemplatesResultResponse" => result::<ListResourceTemplatesResult>(),
        "ListResourcesResult" => whole::<ListResourcesResult>(),
        "ListResourcesResultResponse" => result::<ListResourcesResult>(),
        "ListToolsResult" => whole::<ListToolsResult>(),
        "ListToolsResultResponse" => result::<ListToolsResult>(),
        "ReadResourceRequest" => params::<ReadResourceRequestParams>(),
        "ReadResourceResult" => whole::<ReadResourceResult>(),
        "ReadResourceResultResponse" => result::<ReadResourceResult>(),
        "Resource" => whole::<Resource>(),
        "ResourceUpdatedNotification" => params::<ResourceUpdatedNotificationParams>(),
        "ResourceUpdatedNotificationParams" => whole::<ResourceUpdatedNotificationParams>(),
        "Tool" => whole::<Tool>(),
        _ => return None,
    })
}

/// Elicitation, sampling, roots, and the multi round-trip requests that carry them.
fn client_feature(name: &str) -> Option<Case> {
    Some(match name {
        "BooleanSchema" => whole::<BooleanSchema>(),
        "CreateMessageRequest" | "ElicitRequest" => whole::<InputRequest>(),
        "CreateMessageRequestParams" => whole::<CreateMessageRequestParams>(),
        "CreateMessageResult" => whole::<CreateMessageResult>(),
        "ElicitRequestFormParams" => whole::<ElicitRequestFormParams>(),
        "ElicitRequestURLParams" => whole::<ElicitRequestUrlParams>(),
        "ElicitResult" => whole::<ElicitResult>(),
        "InputRequests" => whole::<InputRequests>(),
        "InputRequiredResult" => whole::<InputRequiredResult>(),
        "InputResponses" => whole::<InputResponses>(),
        "ListRootsRequest" => params::<RequestParams>(),
        "ListRootsResult" => whole::<ListRootsResult>(),
        "ModelPreferences" => whole::<ModelPreferences>(),
        "NumberSchema" => whole::<NumberSchema>(),
        "Root" => whole::<Root>(),
        "SamplingMessage" => whole::<SamplingMessage>(),
        "StringSchema" => whole::<StringSchema>(),
        "TitledMultiSelectEnumSchema" => whole::<TitledMultiSelectEnumSchema>(),
        "TitledSingleSelectEnumSchema" => whole::<TitledSingleSelectEnumSchema>(),
        "UntitledMultiSelectEnumSchema" => whole::<UntitledMultiSelectEnumSchema>(),
        "UntitledSingleSelectEnumSchema" => whole::<UntitledSingleSelectEnumSchema>(),
        _ => return None,
    })
}

/// Everything around the features: discovery, listening, progress, logging, errors.
fn base(name: &str) -> Option<Case> {
    Some(match name {
        "CancelledNotification" => params::<CancelledNotificationParams>(),
        "CancelledNotificationParams" => whole::<CancelledNotificationParams>(),
        "ClientCapabilities" => whole::<ClientCapabilities>(),
        "DiscoverRequest" => params::<RequestParams>(),
        "DiscoverResult" => whole::<DiscoverResult>(),
        "DiscoverResultResponse" => result::<DiscoverResult>(),
        "HeaderMismatchError" => case::<RpcError>("/error"),
        "InternalError" | "InvalidParamsError" | "MethodNotFoundError" | "ParseError" => whole::<RpcError>(),
        "LoggingMessageNotification" => params::<LoggingMessageNotificationParams>(),
        "LoggingMessageNotificationParams" => whole::<LoggingMessageNotificationParams>(),
        "MissingRequiredClientCapabilityError" => case::<MissingRequiredClientCapabilityData>("/error/data"),
        "PaginatedRequestParams" => whole::<PaginatedRequestParams>(),
        "ProgressNotification" => params::<ProgressNotificationParams>(),
        "ProgressNotificationParams" => whole::<ProgressNotificationParams>(),
        "PromptListChangedNotification"
        | "ResourceListChangedNotification"
        | "ToolListChangedNotification" => params::<NotificationParams>(),
        "ServerCapabilities" => whole::<ServerCapabilities>(),
        "SubscriptionsAcknowledgedNotification" => params::<SubscriptionsAcknowledgedNotificationParams>(),
        "SubscriptionsListenRequest" => params::<SubscriptionsListenRequestParams>(),
        "SubscriptionsListenResult" => whole::<SubscriptionsListenResult>(),
        "SubscriptionsListenResultResponse" => result::<SubscriptionsListenResult>(),
        "UnsupportedProtocolVersionError" => case::<UnsupportedProtocolVersionData>("/error/data"),
        _ => return None,
    })
}

/// Checks one example and says what is wrong with it.
fn check(name: &str, text: &str) -> Result<(), String> {
    let case = case_of(name).ok_or("no type of that name in the table")?;
    let example: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let Some(expected) = example.pointer(case.part) else {
        // The only request whose parameters may be left out; any other must have the part.
        return if name == "ListRootsRequest" { Ok(()) } else { Err(format!("no {}", case.part)) };
    };
    // A part is checked with sorted members, a whole example as it is written.
    let written = if case.part.is_empty() { text.to_owned() } else { expected.to_string() };
    let found = (case.round_trip)(&written).map_err(|error| error.to_string())?;
    if found == *expected { Ok(()) } else { Err(format!("became {found}, was {expected}")) }
}

/// The entries of a folder, in order.
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<_>>()?;
    entries.sort();
    Ok(entries)
}

#[test]
fn every_official_example_survives_a_round_trip() -> io::Result<()> {
    let Some(spec) = env::var_os("TOOLWIRE_SPEC") else {
        println!("skipped: TOOLWIRE_SPEC is unset, so the official examples cannot be found");
        return Ok(());
    };
    let folder = Path::new(&spec).join("2026-07-28/examples");
    let (mut checked, mut faults) = (0, Vec::new());
    for folder in entries(&folder)? {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        for file in entries(&folder)? {
            checked += 1;
            if let Err(fault) = check(&name, &fs::read_to_string(&file)?) {
                faults.push(format!("{}: {fault}", file.display()));
            }
        }
    }
    assert!(faults.is_empty(), "{} of {checked} examples failed:\n{}", faults.len(), faults.join("\n"));
    assert!(checked >= AT_LEAST, "only {checked} examples in {}", folder.display());
    Ok(())
}

#[test]
fn an_example_without_a_type_or_with_a_loss_is_a_fault() {
    assert!(check("NoSuchType", "{}").is_err());
    assert!(check("Root", r#"{"name":"n"}"#).is_err());
    assert!(check("Root", r#"{"uri":"u","name":null}"#).is_err());
    assert!(check("CallToolRequest", r#"{"method":"tools/call"}"#).is_err());
    assert!(check("Root", r#"{"uri":"u"}"#).is_ok());
}
