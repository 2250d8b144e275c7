/// The notification of followers at the end of a turn.
extension MonitorLoop {
    func admitFollowers() {
        guard !earlyFollowers.isEmpty, machine.path.path != nil else { return }
        followers += earlyFollowers.filter { $0(machine.path.snapshot, []) }
        earlyFollowers = []
    }

    func notifyPathFollowers() {
        if hasChanged, !pathFollowers.isEmpty, let path = machine.path.path { notifyPathFollowers(path) }
    }

    func notifyPathFollowers(_ path: NetworkPath) {
        hasChanged = false
        if !pathFollowers.isEmpty { pathFollowers.removeAll { !$0(path) } }
    }

    func reportState() {
        guard !stateHandlers.isEmpty else { return }
        let state = MonitorState(snapshot: machine.path.snapshot, isIdle: machine.path.isIdle, deadline: machine.deadline)
        for body in stateHandlers { body(state) }
        stateHandlers = []
    }
}
