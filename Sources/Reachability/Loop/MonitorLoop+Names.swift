internal import EventLoop

/// The resolution of names in the loop's turn.
extension MonitorLoop {
    func resolve(_ request: LookupRequest) {
        deliver(names.resolve(request, on: loop, now: now.monotonicNanoseconds))
    }

    /// Handles a ready socket of the name service.
    func takeNames(_ ready: EventLoop.Ready) { deliver(names.ready(ready, on: loop, now: now.monotonicNanoseconds)) }

    /// Handles an answer of getaddrinfo.
    func takeNames(_ answer: LookupAnswer) {
        deliver(names.libcAnswered(answer, on: loop, now: now.monotonicNanoseconds))
    }

    /// Handles the deadlines of lookups. Called before the end of the turn, so that a probe whose deadline is reached receives the
    /// evidence of its lookup.
    func tickNames() { deliver(names.tick(on: loop, now: now.monotonicNanoseconds)) }

    /// Handles the contents of resolv.conf. Lookups continue with the new name servers.
    func take(_ configuration: ResolverConfiguration) {
        lastConfiguration = configuration
        feed(.resolver(configuration))
        deliver(names.configure(configuration, on: loop, now: now.monotonicNanoseconds))
    }

    private func deliver(_ answers: [LookupAnswer]) {
        for answer in answers { feed(.lookup(answer)) }
    }
}
