/// The version of netwatch, for its programs and for the requests of its probes.
package enum PackageVersion {
    /// The version by semver.org, without a prefix.
    package static let text = "0.1.0"
}
