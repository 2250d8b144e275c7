@testable import Reachability

/// Returns the conversation of an endpoint's probes; `nil` if the connection is the whole probe.
func probePlan(_ endpoint: Endpoint, _ settings: ProbeSettings) -> AnyProbePlan? {
    endpoint.scheme.kind.plan(for: endpoint, settings, after: nil)
}
