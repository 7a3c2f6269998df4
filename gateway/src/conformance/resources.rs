//! The suite's resources.

use rmcp::model::{ErrorData, ReadResourceResult, Resource, ResourceTemplate};
use serde_json::json;

use super::from_json;
use super::tools::PNG;

pub(super) fn list() -> Result<Vec<Resource>, ErrorData> {
    from_json(json!([
        {"uri": "test://static-binary", "name": "static-binary", "description": "An image", "mimeType": "image/png"},
        {"uri": "test://static-text", "name": "static-text", "description": "A text", "mimeType": "text/plain"},
        {"uri": "test://watched-resource", "name": "watched-resource", "description": "A text", "mimeType": "text/plain"},
    ]))
}

pub(super) fn templates() -> Result<Vec<ResourceTemplate>, ErrorData> {
    from_json(json!([{
        "uriTemplate": "test://template/{id}/data", "name": "template", "description": "Data of an id",
        "mimeType": "application/json",
    }]))
}

pub(super) fn read(uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let contents = match uri {
        "test://static-text" => {
            json!({"uri": uri, "mimeType": "text/plain", "text": "This is the content of the static text resource."})
        }
        "test://static-binary" => json!({"uri": uri, "mimeType": "image/png", "blob": PNG}),
        "test://watched-resource" => json!({"uri": uri, "mimeType": "text/plain", "text": "Watched resource content."}),
        _ => {
            let id = uri
                .strip_prefix("test://template/")
                .and_then(|rest| rest.strip_suffix("/data"));
            let Some(id) = id.filter(|id| !id.is_empty() && !id.contains('/')) else {
                return Err(ErrorData::resource_not_found(
                    "Resource not found",
                    Some(json!({"uri": uri})),
                ));
            };
            let data = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
            json!({"uri": uri, "mimeType": "application/json", "text": data.to_string()})
        }
    };
    from_json(json!({"resultType": "complete", "contents": [contents]}))
}
