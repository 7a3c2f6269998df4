//! Which names a request may be sent to, and which web pages may send one: the guard against DNS rebinding, on every
//! listener. Also the CORS answers for the pages that may.

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, HOST, ORIGIN, VARY,
};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Uri};

use crate::fault::Fault;

const ALLOWED_HEADERS: &str = "authorization, x-api-key, idempotency-key, content-type, accept, mcp-protocol-version, \
                               mcp-method, mcp-name, mcp-session-id, last-event-id";
const EXPOSED_HEADERS: &str = "www-authenticate, mcp-session-id, x-request-id, retry-after";

/// One name that a Host header may carry.
#[derive(Clone, Debug, PartialEq, Eq)]
struct HostRule {
    host: String,
    /// None: any port.
    port: Option<u16>,
}

/// One origin of browser clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OriginRule {
    scheme: String,
    host: String,
    port: u16,
}

/// What a listener accepts.
#[derive(Clone, Debug)]
pub(crate) struct HostOrigin {
    hosts: Vec<HostRule>,
    origins: Vec<OriginRule>,
    /// On loopback a page of this very address may call it: its Origin names the Host that was just checked, so no
    /// foreign page can be behind it.
    own_origin: bool,
}

/// The Origin header, checked.
#[derive(Clone, Debug)]
pub(crate) enum PageOrigin {
    /// Command-line and hosted clients send none.
    Absent,
    Allowed(HeaderValue),
}

impl HostOrigin {
    /// `local` adds the loopback names.
    pub(crate) fn new(hosts: &[String], origins: &[String], local: bool) -> Self {
        let mut rules: Vec<HostRule> = hosts.iter().filter_map(|host| parse_host(host)).collect();
        if local {
            rules.extend(["localhost", "127.0.0.1", "::1"].map(|host| HostRule {
                host: host.to_owned(),
                port: None,
            }));
        }
        // Wrong origins were reported when the options were checked.
        let origins = origins
            .iter()
            .filter_map(|origin| parse_origin_rule(origin).ok())
            .collect();
        Self {
            hosts: rules,
            origins,
            own_origin: local,
        }
    }

    pub(crate) fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<PageOrigin, Fault> {
        let named = match headers.get(HOST) {
            Some(host) => host.to_str().ok().and_then(parse_host),
            // HTTP/2 carries it in the request line.
            None => uri.authority().map(rule_of),
        };
        let allowed = named.as_ref().is_some_and(|named| {
            self.hosts
                .iter()
                .any(|rule| rule.host == named.host && rule.port.is_none_or(|port| named.port == Some(port)))
        });
        if !allowed {
            return Err(Fault::new(
                "host_not_allowed",
                "the Host header names no host of this server; add the name to its public hosts",
            ));
        }
        let Some(value) = headers.get(ORIGIN) else {
            return Ok(PageOrigin::Absent);
        };
        let origin = value.to_str().ok().and_then(|text| parse_origin(text).ok());
        match origin {
            Some(origin)
                if headers.get_all(ORIGIN).iter().count() == 1
                    && (self.origins.contains(&origin) || (self.own_origin && is_own(&origin, named.as_ref()))) =>
            {
                Ok(PageOrigin::Allowed(value.clone()))
            }
            _ => Err(Fault::new(
                "origin_not_allowed",
                "pages of this Origin may not call this server; add it, with its port, to the browser origins",
            )),
        }
    }
}

impl PageOrigin {
    /// Lets the page read the answer.
    pub(crate) fn mark(&self, headers: &mut HeaderMap) {
        headers.append(VARY, HeaderValue::from_static("origin"));
        if let Self::Allowed(origin) = self {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
            headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED_HEADERS));
        }
    }

    /// The answer to the question that a browser asks first.
    pub(crate) fn mark_preflight(&self, headers: &mut HeaderMap, methods: &'static str) {
        self.mark(headers);
        if matches!(self, Self::Allowed(_)) {
            headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(methods));
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(ALLOWED_HEADERS));
            headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
        }
    }
}

fn is_own(origin: &OriginRule, host: Option<&HostRule>) -> bool {
    let port_of = |host: &HostRule| host.port.unwrap_or(80);
    origin.scheme == "http" && host.is_some_and(|host| host.host == origin.host && port_of(host) == origin.port)
}

fn rule_of(authority: &Authority) -> HostRule {
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    HostRule {
        host: host.to_ascii_lowercase(),
        port: authority.port_u16(),
    }
}

fn parse_host(text: &str) -> Option<HostRule> {
    let text = text.trim();
    if text.contains('@') {
        return None;
    }
    if let Ok(address) = text.parse::<std::net::Ipv6Addr>() {
        return Some(HostRule {
            host: address.to_string(),
            port: None,
        });
    }
    Authority::try_from(text).ok().map(|authority| rule_of(&authority))
}

/// An entry of the list of browser origins; the port must be written.
pub(crate) fn parse_origin_rule(text: &str) -> Result<OriginRule, &'static str> {
    let uri: Uri = text
        .trim()
        .parse()
        .map_err(|_| "is not an origin like https://app.example.com:443")?;
    if uri.port().is_none() {
        return Err("has no port; write it, as in https://app.example.com:443");
    }
    parse_origin(text)
}

fn parse_origin(text: &str) -> Result<OriginRule, &'static str> {
    let wrong = "is not an origin like https://app.example.com:443";
    let uri: Uri = text.trim().parse().map_err(|_| wrong)?;
    let scheme = uri.scheme_str().ok_or(wrong)?.to_ascii_lowercase();
    let authority = uri.authority().ok_or(wrong)?;
    if authority.as_str().contains('@') || !matches!(uri.path(), "" | "/") || uri.query().is_some() {
        return Err(wrong);
    }
    let rule = rule_of(authority);
    let port = match (rule.port, scheme.as_str()) {
        (Some(port), _) => port,
        (None, "https") => 443,
        (None, "http") => 80,
        (None, _) => return Err(wrong),
    };
    Ok(OriginRule {
        scheme,
        host: rule.host,
        port,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(host: &str, origin: Option<&str>) -> &'static str {
        let rules = HostOrigin::new(
            &["mem.example.com".to_owned(), "balancer:8443".to_owned()],
            &["https://app.example.com:443".to_owned()],
            true,
        );
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().expect("host"));
        if let Some(origin) = origin {
            headers.insert(ORIGIN, origin.parse().expect("origin"));
        }
        match rules.check(&Uri::from_static("/mcp"), &headers) {
            Ok(PageOrigin::Absent) => "no origin",
            Ok(PageOrigin::Allowed(_)) => "origin",
            Err(fault) => fault.code,
        }
    }

    #[test]
    fn only_listed_hosts_and_origins_pass() {
        assert_eq!(check("mem.example.com", None), "no origin");
        assert_eq!(check("MEM.example.com:7700", None), "no origin");
        assert_eq!(check("balancer:8443", None), "no origin");
        assert_eq!(check("balancer", None), "host_not_allowed");
        assert_eq!(check("127.0.0.1:1", None), "no origin");
        assert_eq!(check("[::1]:1", None), "no origin");
        assert_eq!(check("evil.example", None), "host_not_allowed");
        assert_eq!(check("mem.example.com@evil.example", None), "host_not_allowed");
        assert_eq!(check("localhost", Some("https://app.example.com")), "origin");
        assert_eq!(check("localhost", Some("https://app.example.com:443")), "origin");
        assert_eq!(check("localhost", Some("http://app.example.com")), "origin_not_allowed");
        assert_eq!(
            check("localhost", Some("https://app.example.com:8443")),
            "origin_not_allowed"
        );
        assert_eq!(check("localhost", Some("null")), "origin_not_allowed");
        assert_eq!(check("localhost", Some("http://localhost:3000")), "origin_not_allowed");
    }
}
