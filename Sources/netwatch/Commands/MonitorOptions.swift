import Console

/// The options of a monitor, which have no effect on that of a service (`--connect`).
enum MonitorOptions {
    static func list(
        _ network: NetworkOptions, _ targets: TargetOptions, _ canary: CanaryOptions
    ) -> [(name: String, isGiven: Bool)] {
        let levels = targets.levels
        return [
            ("--netns", network.netns != nil), ("--interface", network.interface != nil), ("-4", network.onlyIPv4),
            ("-6", network.onlyIPv6), ("--source-address", targets.packets.sourceAddress != nil),
            ("--mark", targets.packets.mark != nil), ("--resolver", targets.packets.resolver != nil),
            ("--probe-timeout", targets.probeTimeout != nil), ("--canary", canary.canary != nil),
            ("--canary-body", canary.canaryBody != nil), ("--cafile", levels.trust.cafile != nil),
            ("--crlfile", levels.crlfile != nil), ("--cert", levels.trust.cert != nil), ("--key", levels.trust.key != nil),
            ("--proxy", levels.proxy != nil), ("--noproxy", levels.request.noproxy != nil), ("--insecure", levels.insecure),
            ("--expect-status", levels.expectStatus != nil), ("--expect-body", levels.expectBody != nil),
            ("--certificate-days", levels.certificateDays != nil), ("--set", !levels.assignments.isEmpty),
            ("--expect-not-body", levels.expectations.expectNotBody != nil),
            ("--expect-header", !levels.expectations.expectHeader.isEmpty),
            ("--expect-not-header", !levels.expectations.expectNotHeader.isEmpty),
            ("--expect-json", !levels.expectations.expectJson.isEmpty),
            ("--expect-size", levels.expectations.expectSize != nil),
            ("-H", !levels.request.headers.isEmpty),
            ("--user", levels.request.user != nil),
        ]
    }
}
