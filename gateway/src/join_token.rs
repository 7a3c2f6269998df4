//! The token that lets a node join: who may be asked, of which cluster, and a secret that works once. Text without spaces,
//! because people paste it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use waggle_memory::meta::{ClusterId, KeyId, NodeId};

const PREFIX: &str = "wgjoin1.";
const SECRET_BYTES: usize = 32;

const ID_BYTES: usize = 8;

/// Why a text is no join token. Says nothing of what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadToken {
    #[error("this is no join token: one begins with {PREFIX}; make one with `waggle cluster join-token`")]
    Prefix,
    #[error("this join token is damaged; copy it whole")]
    Damaged,
    #[error("no randomness from the operating system")]
    NoRandomness,
}

/// What a token says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub cluster: ClusterId,
    /// Finds what the cluster keeps of it.
    pub id: KeyId,
    /// 32 random bytes in hexadecimal digits.
    pub secret: String,
    /// Nodes that may be asked, with their addresses (host:port).
    pub contacts: Vec<(NodeId, String)>,
}

/// Id and secret of a token that the cluster does not know yet.
pub fn draw() -> Result<(KeyId, String), BadToken> {
    let mut random = [0; ID_BYTES + SECRET_BYTES];
    getrandom::fill(&mut random).map_err(|_| BadToken::NoRandomness)?;
    let (id, secret) = random.split_at(ID_BYTES);
    Ok((KeyId(crate::http::health::hex(id)), crate::http::health::hex(secret)))
}

/// What the cluster keeps of a secret: it has 256 random bits, so a plain hash is as good as a slow one.
pub fn hash(secret: &str) -> Vec<u8> {
    Sha256::digest(secret.as_bytes()).to_vec()
}

impl Token {
    /// The text form.
    pub fn text(&self) -> String {
        let nodes: Vec<Value> = self
            .contacts
            .iter()
            .map(|(node, address)| json!([node.0, address]))
            .collect();
        let body = json!({
            "cluster": self.cluster.to_string(),
            "id": self.id.0,
            "secret": self.secret,
            "nodes": nodes,
        });
        format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(body.to_string()))
    }

    /// Reads the text form.
    pub fn parse(text: &str) -> Result<Self, BadToken> {
        let body = text.trim().strip_prefix(PREFIX).ok_or(BadToken::Prefix)?;
        let body = URL_SAFE_NO_PAD.decode(body).map_err(|_| BadToken::Damaged)?;
        let body: Value = serde_json::from_slice(&body).map_err(|_| BadToken::Damaged)?;
        let word = |name: &str| body[name].as_str().map(str::to_owned);
        let contacts = body["nodes"].as_array().map(Vec::as_slice).unwrap_or_default();
        let read = || {
            let cluster = word("cluster").filter(|text| text.len() == 32)?;
            let cluster = u128::from_str_radix(&cluster, 16).ok()?.to_be_bytes();
            let contacts = contacts
                .iter()
                .map(|pair| Some((NodeId(pair[0].as_u64()?), pair[1].as_str()?.to_owned())))
                .collect::<Option<_>>()?;
            Some(Self {
                cluster: ClusterId(cluster),
                id: KeyId(word("id")?),
                secret: word("secret")?,
                contacts,
            })
        };
        read().ok_or(BadToken::Damaged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_reads_back_and_a_cut_one_is_refused() {
        let (id, secret) = draw().expect("randomness");
        let token = Token {
            cluster: ClusterId([5; 16]),
            id,
            secret,
            contacts: vec![(NodeId(1), "node-1.example.org:7710".to_owned())],
        };
        let text = token.text();
        assert_eq!(Token::parse(&format!("{text}\n")).expect("whole"), token);
        for length in 0..text.len() - 1 {
            assert!(Token::parse(&text[..length]).is_err(), "{length}");
        }
    }
}
