/// What a kind of probe prepares for an attempt at one address.
protocol ProbePlan: Hashable, Sendable {
    /// The scheme of the endpoint.
    var scheme: Endpoint.Scheme { get }
    /// How the attempt is made.
    var transport: ProbeTransport { get }
}

/// How the packets of an attempt are sent. Each has one prober, whatever the kinds of probes are.
enum ProbeTransport {
    /// A TCP connection, with a conversation on it.
    case stream(any StreamPlan)
    /// UDP datagrams.
    case datagrams(any DatagramPlan)
    /// ICMP echo requests.
    case echo(EchoBurst)
}

/// A plan of any kind. Most attempts have none: they are TCP connections alone. It takes one reference.
package struct AnyProbePlan: Hashable, Sendable {
    private final class Box: Sendable {
        let plan: any ProbePlan
        init(_ plan: any ProbePlan) { self.plan = plan }
    }

    private let box: Box

    init(_ plan: some ProbePlan) { box = Box(plan) }

    var plan: any ProbePlan { box.plan }

    /// The plan of the conversation on a TCP connection; `nil` for other transports.
    var stream: (any StreamPlan)? {
        if case .stream(let plan) = plan.transport { return plan }
        return nil
    }

    package static func == (one: AnyProbePlan, other: AnyProbePlan) -> Bool {
        func areEqual<Plan: ProbePlan>(_ one: Plan, _ other: any ProbePlan) -> Bool { (other as? Plan) == one }
        return one.box === other.box || areEqual(one.plan, other.plan)
    }

    package func hash(into hasher: inout Hasher) { plan.hash(into: &hasher) }
}
