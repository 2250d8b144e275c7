import Console
import EventLoop
import Reachability

/// The examination of targets, or of the path: a monitor's verdicts, the kernel's routes, and questions to the hops of silent targets.
final class TargetExamination {
    /// The number of targets that are examined at the same time. The sweep of a silent one has 30 sockets.
    static let batchSize = 16
    /// The time limit for an answer of the monitor.
    private static let inspectionLimit = Duration.seconds(2)

    /// The questions to the hops of a silent target, which run beside the probe that confirms the silence.
    private struct Questions {
        var sweep: HopSweep?
        var firstHop: HopQuestions?
    }

    private let configuration: MonitorConfiguration
    private let settings: ProbeSettings
    private let canary: (endpoint: Endpoint, settings: ProbeSettings)?
    /// The verdict of the canary; `nil` without one, and before the first targets are examined.
    private(set) var canaryUpdate: ServerUpdate?
    private let watcher: Watcher
    private var path: NetworkPath?
    private var questions: [Int: Questions] = [:]

    init(
        _ configuration: MonitorConfiguration, _ settings: ProbeSettings, canary: (Endpoint, ProbeSettings)? = nil
    ) throws(Failure) {
        self.configuration = configuration
        self.settings = settings
        self.canary = canary
        watcher = try Watcher(configuration, targets: [])
    }

    /// Ends the monitor.
    func stop() { watcher.session.stop() }

    /// Examines the targets, and passes the evidence of each to `body`, in order. Without targets, the path is examined.
    ///
    /// - Returns: false if the path never settled.
    func run(_ endpoints: [Endpoint], _ body: (DiagnosisEvidence) throws -> Void) rethrows -> Bool {
        guard !endpoints.isEmpty else { return try examine([nil], body) }
        for start in stride(from: 0, to: endpoints.count, by: Self.batchSize) {
            guard try examine(Array(endpoints[start..<min(start + Self.batchSize, endpoints.count)]), body) else { return false }
        }
        return true
    }

    private func examine(_ endpoints: [Endpoint?], _ body: (DiagnosisEvidence) throws -> Void) rethrows -> Bool {
        let session = watcher.session
        questions = [:]
        var members = endpoints.map { endpoint in
            (endpoint.map { _ in session.newTarget() }, WhyCollection(endpoint: endpoint, settings: settings))
        }
        // The canary is probed beside the first targets.
        if let canary, canaryUpdate == nil {
            let member = WhyCollection(endpoint: canary.endpoint, settings: canary.settings, isCanary: true)
            members.append((session.newTarget(), member))
        }
        let start = Moment.now
        var batch = WhyBatch(members, path: path, start: start)
        for case (let id?, let member) in members {
            guard let endpoint = member.endpoint else { continue }
            session.add(id, endpoint, settings: member.isCanary ? canary?.settings ?? settings : settings)
        }
        while watcher.run(&batch) {
            for (member, request) in batch.takeRequests(at: Moment.now) { perform(request, of: member, &batch) }
            if batch.isComplete(at: Moment.now) { break }
        }
        for number in members.indices { for id in batch.targets(of: number) { session.remove(id) } }
        guard let path = batch.path else { return false }
        self.path = path
        if let member = batch.members.last, member.isCanary, let endpoint = member.endpoint {
            canaryUpdate = member.update ?? .unknown(endpoint, since: start, at: Moment.now)
        }
        for (number, member) in batch.members.enumerated() where !member.isCanary {
            try body(evidence(of: member, number, path))
        }
        return true
    }

    private func perform(_ request: WhyCollection.Request, of number: Int, _ batch: inout WhyBatch) {
        guard let path = batch.path, let endpoint = batch.members[number].endpoint else { return }
        let evidence = batch.members[number].evidence(path: path, at: Moment.now)
        switch request {
        case .probeAddresses(let addresses):
            for (position, address) in addresses.enumerated() {
                let id = watcher.session.newTarget()
                batch.add(id, member: number, address: position)
                let (target, settings) = endpoint.pinned(to: address, settings)
                watcher.session.add(id, target, settings: settings)
            }
        case .examineSilence: questions[number] = ask(about: inspected(evidence))
        case .askNeighbor: batch.note(inspected(evidence).inspection?.neighbor ?? .unknown, of: number, at: Moment.now)
        }
    }

    private func evidence(of member: WhyCollection, _ number: Int, _ path: NetworkPath) -> DiagnosisEvidence {
        var evidence = inspected(member.evidence(path: path, at: Moment.now))
        // The age of the neighbor entry is that at the kernel's answer, which may take a while on a busy machine.
        evidence.examined = member.examined(at: Moment.now)
        if evidence.needsSweep || evidence.hopToAsk != nil {
            // The second probe may have found less than the first.
            let questions = ask(about: evidence, after: self.questions[number] ?? Questions())
            evidence.hops = questions.sweep?.hops()
            evidence.firstHop = questions.firstHop?.answers()
        }
        if evidence.update?.cause?.layer == .route {
            let session = watcher.session
            evidence.ownAddresses = answer { body in session.withSnapshot { body($0.map { Array($0.addresses.values) }) } }
        }
        return evidence
    }

    /// Adds the kernel's route to the destination.
    private func inspected(_ evidence: DiagnosisEvidence) -> DiagnosisEvidence {
        guard let destination = evidence.destination else { return evidence }
        var evidence = evidence
        var (interface, port): (UInt32, UInt16) = (0, 0)
        var selector: RouteSelector?
        func index(_ name: String) -> UInt32? {
            evidence.path.interfaces.first { $0.hasName(name) }?.index ?? UInt32(name)
        }
        if let zone = destination.zone ?? evidence.endpoint?.zone, let found = index(zone) { interface = found }
        if case .server = destination {
            port = evidence.endpoint?.port ?? 0
            selector = settings.selector
            if let name = settings.interface, let found = index(name) { interface = found }
        }
        let query = RouteQuery(destination.address, interface: interface, port: port, selector: selector)
        let session = watcher.session
        evidence.inspection = answer { session.inspect(query, $0) }
        return evidence
    }

    /// Waits for a value that the monitor passes to a closure on its own thread; `nil` if it does not in time.
    private func answer<Value: Sendable>(to question: (@escaping @Sendable (Value?) -> Void) -> Void) -> Value? {
        guard let waker = try? Waker() else { return nil }
        let answer = Locked<Value??>(nil)
        question { value in
            answer.withLock { $0 = .some(value) }
            waker.wake()
        }
        let end = Moment.now.advanced(by: Self.inspectionLimit).monotonicNanoseconds
        let main = MainLoop(waker)
        while answer.withLock({ $0 == nil }), MonotonicClock.now() < end { _ = main.wait(until: end) }
        return answer.withLock { $0 ?? nil }
    }

    /// Starts the questions to the hops on the way to a silent target that were not asked before.
    private func ask(about evidence: DiagnosisEvidence, after before: Questions = Questions()) -> Questions {
        var questions = before
        if evidence.needsSweep, questions.sweep == nil, let address = evidence.destination?.address, let port = evidence.sweepPort
        {
            let own = Set(evidence.path.interfaces.flatMap { $0.addresses.map(\.address) })
            let name = settings.interface.map { name in evidence.path.interfaces.first { $0.hasName(name) }?.name ?? name }
            questions.sweep = HopSweep(
                to: HopSearch.Destination(address, port: port, interface: name, selector: evidence.inspection?.query.selector),
                in: configuration.namespace,
                isOwn: { $0.isLoopback || own.contains($0) })
        }
        questions.firstHop = questions.firstHop ?? evidence.hopToAsk.flatMap { HopQuestions(to: $0, in: configuration.namespace) }
        return questions
    }
}

extension Endpoint {
    /// The interface of a link-local address, as the user wrote it.
    fileprivate var zone: String? {
        if case .address(_, let zone) = host { zone } else { nil }
    }
}
