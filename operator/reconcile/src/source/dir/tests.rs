//! The rules of a folder of manifests, one by one.

mod folders;
mod scans;

const SHOP: &str = "{apiVersion: rowgate.dev/v1alpha1, kind: Tenant, metadata: {name: shop}, spec: {}}";
const KEY: &str =
    "{apiVersion: rowgate.dev/v1alpha1, kind: ApiKey, metadata: {name: k}, spec: {tenantRef: {name: shop}}}";
const REVOKED: &str = "{apiVersion: rowgate.dev/v1alpha1, kind: ApiKey, metadata: {name: k}, spec: {tenantRef: {name: shop}, revoked: true}}";
