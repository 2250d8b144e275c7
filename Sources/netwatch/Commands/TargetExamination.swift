import Console
import EventLoop
import Reachability

/// The examination of a target, or of the path: a monitor's verdict, the kernel's route, and a sweep if the target is silent.
struct TargetExamination {
    /// The time limit for an answer of the kernel about a route.
    private static let inspectionLimit = Duration.seconds(2)

    private let configuration: MonitorConfiguration
    private let settings: ProbeSettings
    private let watcher: Watcher
    private var collection: WhyCollection

    init(_ configuration: MonitorConfiguration, _ endpoint: Endpoint?, _ settings: ProbeSettings) throws(Failure) {
        self.configuration = configuration
        self.settings = settings
        collection = WhyCollection(endpoint: endpoint, probeTimeout: settings.timeout, start: Clock.now)
        watcher = try Watcher(configuration, targets: endpoint.map { [($0, settings)] } ?? [])
    }

    /// Returns the evidence; `nil` if the path never settled.
    func run() -> DiagnosisEvidence? {
        var collection = collection
        defer { watcher.session.stop() }
        watcher.run(&collection)
        var sweep: HopSweep?
        if collection.isPaused {
            // The sweep runs beside the probe that confirms the silence.
            if let evidence = collection.evidence.map(inspected), evidence.needsSweep { sweep = startSweep(evidence) }
            collection.resume()
            watcher.run(&collection)
        }
        guard var evidence = collection.evidence.map(inspected) else { return nil }
        if evidence.needsSweep {
            sweep = sweep ?? startSweep(evidence)
            evidence.hops = sweep?.hops()
        }
        return evidence
    }

    /// Adds the kernel's route to the destination.
    private func inspected(_ evidence: DiagnosisEvidence) -> DiagnosisEvidence {
        guard let destination = evidence.destination else { return evidence }
        var evidence = evidence
        var (interface, port): (UInt32, UInt16) = (0, 0)
        func index(_ name: String) -> UInt32? {
            evidence.path.interfaces.first { $0.hasName(name) }?.index ?? UInt32(name)
        }
        if let zone = destination.zone ?? evidence.endpoint?.zone, let found = index(zone) { interface = found }
        if case .server = destination {
            port = evidence.endpoint?.port ?? 0
            if let name = settings.interface, let found = index(name) { interface = found }
        }
        evidence.inspection = answer(to: RouteQuery(destination.address, interface: interface, port: port))
        return evidence
    }

    private func answer(to query: RouteQuery) -> RouteInspection? {
        guard let waker = try? Waker() else { return nil }
        let answer = Locked<RouteInspection??>(nil)
        watcher.session.inspect(query) { inspection in
            answer.withLock { $0 = .some(inspection) }
            waker.wake()
        }
        let end = Clock.now.advanced(by: Self.inspectionLimit).monotonicNanoseconds
        let main = MainLoop(waker)
        while answer.withLock({ $0 == nil }), Clock.nanoseconds < end { _ = main.wait(until: end) }
        return answer.withLock { $0 ?? nil }
    }

    private func startSweep(_ evidence: DiagnosisEvidence) -> HopSweep? {
        guard case .server(let address)? = evidence.destination, let port = evidence.endpoint?.port else { return nil }
        let own = Set(evidence.path.interfaces.flatMap { $0.addresses.map(\.address) })
        let name = settings.interface.map { name in evidence.path.interfaces.first { $0.hasName(name) }?.name ?? name }
        return HopSweep(
            to: HopSweep.Target(address, port: port, interface: name), in: configuration.namespace,
            isOwn: { $0.isLoopback || own.contains($0) })
    }
}

extension Endpoint {
    /// The interface of a link-local address, as the user wrote it.
    fileprivate var zone: String? {
        if case .address(_, let zone) = host { zone } else { nil }
    }
}
