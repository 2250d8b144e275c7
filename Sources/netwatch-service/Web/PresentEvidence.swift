import EventLoop
import Reachability

/// The present evidence about a target for its page: its last probe, and the kernel's route to it.
final class PresentEvidence: Sendable {
    /// The maximum number of questions to the kernel at a time. They run on the monitor's thread, so a page beyond it shows no route.
    static let limit = 8

    private let lastProbe: @Sendable (TargetID, Endpoint) -> ProbeReport?
    private let session: MonitorSession
    private let waiting = Locked(0)

    /// - Parameters:
    ///   - session: the monitor, which asks the kernel.
    ///   - lastProbe: returns the last probe of a target; `nil` if it is not known.
    init(_ session: MonitorSession, lastProbe: @escaping @Sendable (TargetID, Endpoint) -> ProbeReport?) {
        (self.session, self.lastProbe) = (session, lastProbe)
    }

    /// Adds the evidence to the history of a target.
    func complete(_ detail: inout TargetDetail, of target: BoardTarget, _ path: NetworkPath?) async {
        detail.report = target.monitor.flatMap { lastProbe($0, target.update.endpoint) }
        guard let path, let query = Self.routeQuery(of: target, path), let inspection = await inspect(query) else { return }
        // Probes that are bound to another interface, or a route that has just changed: it is not the one of the last probe.
        guard inspection.chosen?.interface == target.update.interface?.index else { return }
        detail.inspection = inspection
    }

    /// Returns the query for the route to the server that answered; `nil` if none is known.
    private static func routeQuery(of target: BoardTarget, _ path: NetworkPath) -> RouteQuery? {
        guard let address = target.update.address else { return nil }
        let interface = target.update.interface.flatMap { interface in
            address.isLinkLocal ? path.interfaces.first { $0.hasName(interface.name) }?.index : nil
        }
        return RouteQuery(
            address, interface: interface ?? 0, port: target.update.endpoint.port, selector: target.selector)
    }

    private func inspect(_ query: RouteQuery) async -> RouteInspection? {
        let isAccepted = waiting.withLock { waiting in
            guard waiting < Self.limit else { return false }
            waiting += 1
            return true
        }
        guard isAccepted else { return nil }
        defer { waiting.withLock { $0 -= 1 } }
        return await withCheckedContinuation { continuation in
            session.inspect(query) { continuation.resume(returning: $0) }
        }
    }
}
