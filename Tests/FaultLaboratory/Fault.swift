package import NetworkLab

/// A row of the laboratory's table: one fault in a network that otherwise works, and the verdict that it requires.
package struct Fault: Sendable, CustomStringConvertible {
    /// The fault in words, as it is in the table.
    package let name: String
    /// The targets of the program.
    package let targets: [String]
    /// Further targets of the program, whose verdicts are not judged. They can mislead it.
    package var companions: [String] = []
    /// Further targets of the program, which must stay up.
    package var workingTargets: [String] = []
    /// Further options of the program, for its probes.
    package var options: [String] = []
    /// The further options of the canary, which is then the only target; `nil` if the targets are ordinary ones.
    package var canaryOptions: [String]?
    /// The name servers in the client's resolv.conf.
    package var nameServers: [String] = []
    /// Changes the network before the program starts. Without ``make`` this makes the fault.
    package var prepare: (@Sendable (FaultNetwork) throws -> Void)?
    /// Makes the fault, while the program runs and all targets are up. Without a program to watch, it only makes the fault.
    package var make: (@Sendable (FaultNetwork, VerdictWatch?) throws -> Void)?
    /// Whether the row opens tun devices.
    package var needsTun = false
    /// The required verdict.
    package let expected: ExpectedVerdict
    /// The verdict that `netwatch why` must give while the fault exists. It sees only the present, so it may know less.
    package var explanation = Explanation.same

    /// A part of the sentence that the cause must have.
    package var sentencePart: String?
    /// Whether `netwatch why` must show the facts of a certificate.
    package var hasCertificate = false

    /// Evidence that the layer tls of `netwatch why` must have, whatever the verdict is.
    package var evidenceOfTLS: [String: String] = [:]

    /// Whether `netwatch status` must have the verdict too: its first probe cannot know it.
    package var isSeenByStatus = false

    /// The verdict of `netwatch why` for a row.
    package enum Explanation: Sendable {
        /// The row's verdict, with its evidence.
        case same
        /// Any verdict of this status.
        case status(String)
        /// It is not asked: the row has no lasting fault.
        case none
    }

    /// A fault that is made while the program runs and the target is up.
    package static func during(
        _ name: String, _ targets: String..., prepare: (@Sendable (FaultNetwork) throws -> Void)? = nil,
        expect expected: ExpectedVerdict, make: @escaping @Sendable (FaultNetwork) throws -> Void
    ) -> Self {
        Self(name: name, targets: targets, prepare: prepare, make: { network, _ in try make(network) }, expected: expected)
    }

    /// A fault that exists before the program starts.
    package static func fromStart(
        _ name: String, _ targets: String..., expect expected: ExpectedVerdict,
        prepare: @escaping @Sendable (FaultNetwork) throws -> Void
    ) -> Self {
        Self(name: name, targets: targets, prepare: prepare, expected: expected)
    }

    /// This fault with name servers in the client's resolv.conf.
    package func nameServers(_ addresses: [String]) -> Self {
        var copy = self
        copy.nameServers = addresses
        return copy
    }

    /// This fault with further targets of the program.
    package func beside(_ companions: String...) -> Self {
        var copy = self
        copy.companions = companions
        return copy
    }

    /// This fault with further targets of the program, which must stay up.
    package func beside(working targets: String...) -> Self {
        var copy = self
        copy.workingTargets = targets
        return copy
    }

    /// This fault with options of the program.
    package func options(_ options: [String]) -> Self {
        var copy = self
        copy.options = options
        return copy
    }

    /// This fault with a part of the sentence that the cause must have.
    package func naming(_ part: String) -> Self {
        var copy = self
        copy.sentencePart = part
        return copy
    }

    /// This fault as one whose verdict `netwatch status` must have too.
    package func seenByStatus() -> Self {
        var copy = self
        copy.isSeenByStatus = true
        return copy
    }

    /// This fault as one whose certificate `netwatch why` must show.
    package func showingCertificate() -> Self {
        var copy = self
        copy.hasCertificate = true
        return copy
    }

    /// This fault with evidence that the layer tls of `netwatch why` must have, whatever the verdict is.
    package func showingOfTLS(_ evidence: [String: String]) -> Self {
        var copy = self
        copy.evidenceOfTLS = evidence
        return copy
    }

    /// This fault as one that the program sees by a canary, which is the URL of the target.
    package func asCanary(_ options: [String] = []) -> Self {
        var copy = self
        copy.canaryOptions = options
        return copy
    }

    /// The options of the program, and the arguments by which it receives the targets.
    package var arguments: [String] { arguments(targets) }

    /// ``arguments`` with the first target only.
    package var firstArguments: [String] { arguments([targets[0]]) }

    private func arguments(_ targets: [String]) -> [String] {
        options + (canaryOptions.map { ["--canary", targets[0]] + $0 } ?? targets)
    }

    /// This fault as one that opens tun devices.
    package func withTun() -> Self {
        var copy = self
        copy.needsTun = true
        return copy
    }

    /// This fault with another verdict of `netwatch why`.
    package func explained(_ explanation: Explanation) -> Self {
        var copy = self
        copy.explanation = explanation
        return copy
    }

    package var description: String { name }

    /// All rows, in the order of the table.
    package static let all: [Fault] = [
        linkFaults, addressFaults, routeFaults, neighborFaults, nameServerFaults, firewallFaults, serverFaults, upstreamFaults,
        crowdFaults,
        routerFaults, pingFaults, dnsFaults, dialogueFaults,
        tunnelFaults, partialFaults, tlsFaults, httpFaults, canaryFaults, lastingFaults,
    ].flatMap { $0 }

    /// Rows that need an idle machine, for the measurement of all rows only.
    package static let large: [Fault] = largeCrowdFaults
}
