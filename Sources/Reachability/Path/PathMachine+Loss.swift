// The loss of the path that a message of its link shows before the kernel is asked.
//
// If no other interface is usable, the path ends with its link, whatever routes remain (docs/command-line.md, "Satisfied
// paths"). The update is published before the message is handled. The consequences follow: removed addresses and routes, and at
// the turn's end the kernel's own answer.

extension PathMachine {
    /// The message of a link that ended the path, and those after it.
    struct DelayedMessages: Sendable {
        let messages: ArraySlice<NetlinkMessage>
        /// The monotonic time of their event.
        let time: Int64
    }

    /// The path after a message of the selected link.
    struct Loss: Sendable {
        /// The link as the message describes it.
        let link: Link
        let path: NetworkPath
        /// The differences from the published path, which changes only after an evaluation.
        let differences: CaseSet<PathChangeReason>
        let selected: PathEvaluation.Selected?
        /// The one input that may change without an evaluation.
        let isConsistent: Bool
    }

    /// Handles the messages that a published loss has delayed, so that ``snapshot`` has them. Without this call, the next event does that.
    package mutating func takeDelayedMessages() {
        guard let delayed else { return }
        self.delayed = nil
        for message in delayed.messages { take(message, at: delayed.time) }
        // The published update has counted the first one.
        work.events -= 1
    }

    /// Whether ``foresee()`` has work. Call it when the monitor is idle.
    package var isForesightDue: Bool { isForesightMissing && path?.status == .satisfied && !hasEnded }

    /// Computes the losses that the next message of the selected link may cause: the link is switched off, or loses its carrier.
    /// Only the time until such a message is published depends on this call.
    package mutating func foresee() {
        isForesightMissing = false
        foreseen = []
        guard let link = onlyUsableLink else { return }
        foreseen = [link.afterSwitchingOff, link.afterCarrierLoss].compactMap { makeLoss(of: $0, formerly: link) }
    }

    /// Returns the loss of the path that the link's message causes; `nil` if the kernel must be asked first.
    func loss(of link: Link) -> Loss? {
        guard !link.hasCarrier, link.index == path?.interface?.index, let former = onlyUsableLink else { return nil }
        if let known = foreseen.first(where: { $0.link == link && $0.isConsistent == isConsistent }) { return known }
        return makeLoss(of: link, formerly: former)
    }

    /// The selected link, if the path has no other; `nil` if another interface is usable, or changes wait for an evaluation.
    private var onlyUsableLink: Link? {
        guard let path, let interface = path.interface, path.underlying == nil, unsettled.isEmpty, resolver != nil,
            work.isUnchanged, pending.changes.isEmpty, awaited.isEmpty,
            path.interfaceV4.map({ $0.index == interface.index }) ?? true,
            path.interfaceV6.map({ $0.index == interface.index }) ?? true,
            let link = keeper.live.links[interface.index], link.hasCarrier
        else { return nil }
        let defaults = keeper.live.defaults
        let isAlone = catalog.interfaces.values.allSatisfy { other in
            if other.index == interface.index || !configuration.allows(other) { return true }
            // A loopback interface and a port have no path of their own without a default route.
            if other.type == .loopback || other.level == .enslaved { return defaults.metrics[other.index] == nil }
            return other.level < .degraded
        }
        return isAlone ? link : nil
    }

    private func makeLoss(of link: Link, formerly former: Link) -> Loss? {
        // Another kind of device may need other evidence.
        guard let resolver, let published, EvidenceSubject(link) == EvidenceSubject(former), link.master == former.master else {
            return nil
        }
        let snapshot = keeper.live.losing(link)
        var catalog = self.catalog
        catalog.update(snapshot, evidence: evidence, changed: [link.index])
        var answers = RouteAnswers()
        while true {
            let evaluation = PathEvaluation(
                snapshot: snapshot, catalog: catalog, resolver: resolver, configuration: configuration,
                destinations: destinations, answers: answers, lastSelected: lastSelected, isConsistent: isConsistent,
                followed: followed)
            switch evaluation.run() {
            // The cause is that of the link, whatever the kernel answers.
            case .ask(let queries): for query in queries { answers.add(.refused(errno: RouteAnswer.noRoute), to: query) }
            case .path(let path, let selected):
                guard path.cause?.layer == .link else { return nil }
                return Loss(
                    link: link, path: path, differences: PathDifference.reasons(from: published, to: path), selected: selected,
                    isConsistent: isConsistent)
            }
        }
    }
}

extension Link {
    /// The link as the kernel reports it after an administrator has switched it off.
    fileprivate var afterSwitchingOff: Link {
        var link = self
        link.flags.subtract([.up, .running, .lowerUp, .dormant])
        link.operationalState = .down
        return link
    }

    /// The link as the kernel reports it after the loss of its carrier (default_operstate).
    fileprivate var afterCarrierLoss: Link {
        var link = self
        link.flags.subtract([.running, .lowerUp])
        link.operationalState = lower != 0 || lowerIsElsewhere ? .lowerLayerDown : .down
        return link
    }
}

extension PathMachine.Work {
    /// Whether nothing waits for an evaluation.
    fileprivate var isUnchanged: Bool { !ask && !evaluate && !filters && !structure && interfaces.isEmpty }
}
