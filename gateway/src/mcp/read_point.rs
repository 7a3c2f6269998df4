//! The opaque `read_at` of answers. Sent back as `_meta["waggle/readAfter"]`, it keeps a bounded answer from being
//! older. It carries a short seal, so that nobody can ask a node to wait for an index that never comes.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use subtle::ConstantTimeEq;
use waggle_proto::wire::ReadPoint;

use crate::fault::Fault;
use crate::seal::keyed_hash;

const BODY_BYTES: usize = 4 + 8 + 8;
const TAG_BYTES: usize = 8;

pub(crate) struct ReadPoints {
    key: [u8; 32],
}

impl ReadPoints {
    pub(crate) fn new(cluster_secret: &[u8]) -> Self {
        Self {
            key: keyed_hash(cluster_secret, &[b"waggle read point v1"]),
        }
    }

    pub(crate) fn seal(&self, point: &ReadPoint, tenant: &str) -> String {
        let mut bytes = Vec::with_capacity(BODY_BYTES + TAG_BYTES);
        bytes.extend(point.shard.to_be_bytes());
        bytes.extend(point.applied_index.to_be_bytes());
        bytes.extend(point.stamp.to_be_bytes());
        let tag = self.tag(&bytes, tenant);
        bytes.extend(tag);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The applied index to wait for. A tenant that moved to another shard has its data there already.
    pub(crate) fn open(&self, text: &str, tenant: &str) -> Result<u64, Fault> {
        let refused = || {
            Fault::validation(
                "waggle/readAfter",
                "_meta 'waggle/readAfter' is not a read_at of this tenant",
            )
        };
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| refused())?;
        let (body, tag) = bytes.split_at_checked(BODY_BYTES).ok_or_else(refused)?;
        if !bool::from(self.tag(body, tenant).ct_eq(tag)) {
            return Err(refused());
        }
        let index = body
            .get(4..12)
            .and_then(|index| index.try_into().ok())
            .ok_or_else(refused)?;
        Ok(u64::from_be_bytes(index))
    }

    fn tag(&self, body: &[u8], tenant: &str) -> [u8; TAG_BYTES] {
        let hash = keyed_hash(&self.key, &[body, tenant.as_bytes()]);
        let mut tag = [0; TAG_BYTES];
        tag.iter_mut().zip(hash).for_each(|(to, from)| *to = from);
        tag
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_point_comes_back_to_its_tenant_only() {
        let points = ReadPoints::new(&[3; 32]);
        let sealed = points.seal(
            &ReadPoint {
                shard: 1,
                applied_index: 77,
                stamp: 5,
            },
            "acme",
        );
        assert_eq!(points.open(&sealed, "acme"), Ok(77));
        assert!(points.open(&sealed, "other").is_err());
        assert!(points.open("AAAA", "acme").is_err());
        assert!(points.open("", "acme").is_err());
    }
}
