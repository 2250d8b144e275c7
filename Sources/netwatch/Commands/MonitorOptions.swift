import Console

/// The options of a monitor, which have no effect on that of a service (`--connect`).
enum MonitorOptions {
    static func list(
        _ network: NetworkOptions, _ targets: TargetOptions, _ canary: CanaryOptions
    ) -> [(name: String, isGiven: Bool)] {
        [
            ("--netns", network.netns != nil), ("--interface", network.interface != nil), ("-4", network.onlyIPv4),
            ("-6", network.onlyIPv6), ("--source-address", targets.sourceAddress != nil),
            ("--mark", targets.mark != nil), ("--resolver", targets.resolver != nil),
            ("--probe-timeout", targets.probeTimeout != nil), ("--canary", canary.canary != nil),
            ("--canary-body", canary.canaryBody != nil), ("--cafile", targets.trust.cafile != nil),
            ("--crlfile", targets.crlfile != nil), ("--cert", targets.trust.cert != nil), ("--key", targets.trust.key != nil),
            ("--proxy", targets.proxy != nil), ("--noproxy", targets.request.noproxy != nil), ("--insecure", targets.insecure),
            ("--expect-status", targets.expectStatus != nil), ("--expect-body", targets.expectBody != nil),
            ("--certificate-days", targets.certificateDays != nil), ("--set", !targets.assignments.isEmpty),
            ("--expect-not-body", targets.expectNotBody != nil),
            ("--expect-header", !targets.expectHeader.isEmpty),
            ("--expect-not-header", !targets.expectNotHeader.isEmpty),
            ("--expect-json", !targets.expectJson.isEmpty),
            ("--expect-size", targets.expectSize != nil),
            ("-H", !targets.request.headers.isEmpty),
            ("--user", targets.request.user != nil),
        ]
    }
}
