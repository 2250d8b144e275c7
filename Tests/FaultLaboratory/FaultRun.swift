import EventLoop
import Foundation
package import NetworkLab

/// The result of a row: the program's verdict and its time.
package struct FaultOutcome: Sendable {
    /// The verdicts in their order, such as `down tcp/timeout → unreachable neighbor/gateway-silent`.
    package var verdict: String
    /// The sentence of `netwatch why`.
    package var explanation = ""
    /// The seconds from the fault to the required verdict.
    package var seconds: Double?
    /// Why the row is wrong, or nil if it is right.
    package var problem: String?
    /// How late the verdict came, if it is right and took longer than the row allows. A busy machine can be the reason.
    package var lateness: String?

    /// An outcome without a verdict.
    package static func failed(_ problem: String) -> Self {
        Self(verdict: "", problem: problem)
    }
}

extension Fault {
    /// Makes the network and the fault, and observes the program. `inspect` is called while the fault still exists.
    package func run(inspect: (FaultNetwork) throws -> Void = { _ in }) throws -> FaultOutcome {
        let network = try FaultNetwork(nameServers: nameServers)
        try prepare?(network)
        let watch = try VerdictWatch(network, self)
        if let make {
            guard try watch.await(within: .seconds(60), { $0.isUp }) else {
                let seen = targets.map { watch.latest[$0].map { "\($0.line) (\($0.detail))" } ?? "no verdict" }
                return .failed("not up before the fault: \(seen.joined(separator: ", "))")
            }
            watch.beginFault(atStart: false)
            try make(network, watch)
        } else {
            watch.beginFault(atStart: true)
        }
        let patience = max(expected.limit * 2, .seconds(60))
        let isReached = try watch.await(within: patience) { watch in
            watch.all(expected.isMet)
        }
        let reached = watch.latest.values.map(\.arrival).max() ?? 0
        var outcome = FaultOutcome(
            verdict: text(watch), seconds: isReached ? max(0, Double(reached - watch.faultTime) / 1e9) : nil)
        if let wrong = watch.sinceFault.first(where: { !expected.allows($0) }) {
            outcome.problem = "\(expected.describe(wrong)): \(wrong.detail)"
        } else if !isReached {
            outcome.problem = "not reached within \(patience)"
        }
        if outcome.problem == nil { try checkSteadiness(watch, &outcome) }
        if outcome.problem == nil { outcome.problem = watch.problemOfWorking }
        if outcome.problem == nil { checkTime(watch, &outcome) }
        watch.stop()
        if outcome.problem == nil { try explain(&outcome) }
        try inspect(network)
        return outcome
    }

    /// Asks `netwatch why`, which must give the same verdict. Routers limit their ICMP messages, so this program has a network of
    /// its own.
    private func explain(_ outcome: inout FaultOutcome) throws {
        if case .none = explanation { return }
        let network = try FaultNetwork(nameServers: nameServers)
        try prepare?(network)
        if let make {
            // The route has been in use before the fault.
            let status = try network.start([Programs.netwatch, "status"] + firstArguments, output: .file)
            guard try status.wait(within: .seconds(60)) == 0 else { throw LabError("not up before the fault: \(status.output)") }
            try make(network, nil)
        }
        let text =
            hasLevels && expected.lines != ["up"]
            ? try network.start([Programs.netwatch, "why"] + options + [secureTarget], output: .file) : nil
        let program = try network.start([Programs.netwatch, "why", "--json"] + firstArguments, output: .file)
        _ = try program.wait(within: .seconds(60))
        guard let document = try? JSONSerialization.jsonObject(with: Data(program.output.utf8)) as? [String: Any] else {
            outcome.problem = "why: no document: \(program.ending)"
            return
        }
        // Without a target, `why` explains the path, and has the verdict of the canary.
        let found = canaryOptions == nil ? document : document["canary"] as? [String: Any] ?? [:]
        let verdict = SeenVerdict(found, arrival: MonotonicClock.now())
        outcome.explanation = verdict.detail.isEmpty ? verdict.line : "\(verdict.detail) (\(verdict.line))"
        let isRight =
            switch explanation {
            case .same: expected.isMet(by: verdict)
            case .status(let status): verdict.status == status
            case .none: true
            }
        if !isRight { outcome.problem = "why: \(expected.describe(verdict)): \(verdict.detail)" }
        if outcome.problem == nil { outcome.problem = problemOfTLS(in: document) }
        if outcome.problem == nil, isSeenByStatus { try checkStatus(network, &outcome) }
        guard outcome.problem == nil, let text else { return }
        _ = try text.wait(within: .seconds(60))
        let explanation = ExplanationText(text.output)
        outcome.explanation = explanation.sentence
        if let problem = explanation.problem(of: self, verdict) { outcome.problem = "why: \(problem):\n\(text.output)" }
    }

    /// The missing evidence of the layer tls; `nil` if there is none.
    private func problemOfTLS(in document: [String: Any]) -> String? {
        guard !evidenceOfTLS.isEmpty else { return nil }
        let layer = (document["layers"] as? [[String: Any]])?.first { $0["layer"] as? String == "tls" }
        let found = layer?["evidence"] as? [String: Any] ?? [:]
        guard let missing = evidenceOfTLS.first(where: { found[$0.key] as? String != $0.value }) else { return nil }
        return "why: tls has no \(missing.key)=\(missing.value): \(found)"
    }

    /// Asks `netwatch status`, which must give the same verdict.
    private func checkStatus(_ network: FaultNetwork, _ outcome: inout FaultOutcome) throws {
        let program = try network.start([Programs.netwatch, "status", "--json"] + firstArguments, output: .file)
        _ = try program.wait(within: .seconds(60))
        let document = try? JSONSerialization.jsonObject(with: Data(program.output.utf8)) as? [String: Any]
        guard let target = (document?["targets"] as? [[String: Any]])?.first else {
            outcome.problem = "status: no document: \(program.ending)"
            return
        }
        let verdict = SeenVerdict(target, arrival: MonotonicClock.now())
        if !expected.isMet(by: verdict) { outcome.problem = "status: \(expected.describe(verdict)): \(verdict.detail)" }
    }

    /// Whether the target is one of TLS or HTTP, and not the canary's URL.
    private var hasLevels: Bool {
        canaryOptions == nil && ["tls:", "http:", "https:"].contains { targets[0].hasPrefix($0) }
    }

    /// The target, as an https target if it is a tls target.
    private var secureTarget: String { targets[0].replacing(#/^tls:/#, with: "https:") }

    private func checkTime(_ watch: VerdictWatch, _ outcome: inout FaultOutcome) {
        guard let seconds = outcome.seconds else { return }
        if seconds > expected.limit / .seconds(1) {
            outcome.lateness = "after \(seconds) s instead of \(expected.limit / .seconds(1)) s"
        } else if let limit = expected.confirmation, let failure = watch.firstFailure,
            let verdict = watch.sinceFault.last(where: expected.isMet)
        {
            let confirmation = Double(verdict.time - failure) / 1e9
            guard confirmation > limit / .seconds(1) else { return }
            outcome.lateness = "\(confirmation) s after the first failed probe instead of \(limit / .seconds(1)) s"
        }
    }

    /// The verdict must not change during the next probes.
    private func checkSteadiness(_ watch: VerdictWatch, _ outcome: inout FaultOutcome) throws {
        guard expected.steadyProbes > 0 else { return }
        let before = watch.probes
        let isProbed = try watch.await(within: Duration.seconds(60 * expected.steadyProbes)) { watch in
            targets.allSatisfy { watch.probes[$0, default: 0] >= before[$0, default: 0] + expected.steadyProbes }
                || !watch.all(expected.isMet)
        }
        outcome.verdict = text(watch)
        if !watch.all(expected.isMet) {
            outcome.problem = "does not last: \(outcome.verdict)"
        } else if !isProbed {
            outcome.problem = "not probed any more"
        }
    }

    /// The verdicts since the fault, without repetitions. Many verdicts are counted.
    private func text(_ watch: VerdictWatch) -> String {
        let seen = watch.sinceFault.isEmpty ? Array(watch.latest.values) : watch.sinceFault
        var lines: [String] = []
        for line in seen.map(expected.describe) where lines.last != line { lines.append(line) }
        guard lines.count > 5 else { return lines.joined(separator: " → ") }
        let counts = Dictionary(lines.map { ($0, 1) }, uniquingKeysWith: +)
        return counts.sorted { $0.key < $1.key }.map { "\($0.value) × \($0.key)" }.joined(separator: ", ")
    }
}

extension Fault {
    /// Runs the row on a thread of its own, so that it does not block a thread of the pool. A row that is only late is repeated if there is another
    /// attempt, to measure its time without what else the machine does.
    package func outcome(
        attempts: Int, inspect: @escaping @Sendable (FaultNetwork) throws -> Void = { _ in }
    ) async throws -> FaultOutcome {
        let outcome = try await withCheckedThrowingContinuation { continuation in
            do {
                try detachThread { continuation.resume(with: Result { try run(inspect: inspect) }) }
            } catch {
                continuation.resume(throwing: error)
            }
        }
        guard outcome.problem == nil, outcome.lateness != nil, attempts > 1 else { return outcome }
        return try await self.outcome(attempts: attempts - 1, inspect: inspect)
    }
}
