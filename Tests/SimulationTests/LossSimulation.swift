import Pacing

@testable import Reachability

/// A target behind a network that loses packets in both directions, as the target's machine sees it. Five minutes take a few
/// milliseconds.
struct LossSimulation {
    private static let second: Int64 = 1_000_000_000
    private static let roundTrip: Int64 = 20_000_000
    private static let server = IPAddress(v4: 0xc000_0201)

    private struct Pending {
        let due: Int64
        let event: TargetMachine.Event
        /// The number of the attempt; `nil` for other answers.
        let attempt: UInt64?
    }

    private var machine: TargetMachine
    private let localState: LocalState
    private var dice: SplitMix64
    private let lossPercent: Int
    private var now: Int64 = 0
    private var pending: [Pending] = []
    /// The states that were published, without repetitions.
    private(set) var states: [StatusName] = []
    /// The number of probes that failed.
    private(set) var failedProbes = 0
    private(set) var probes = 0

    init(seed: UInt64, lossPercent: Int, _ settings: ProbeSettings) throws {
        dice = SplitMix64(seed: seed)
        self.lossPercent = lossPercent
        machine = TargetMachine(
            id: TargetID(0), endpoint: try Endpoint("192.0.2.1:443"), settings: settings, firstNumber: 1)
        localState = LocalState(
            interfaces: [:], path: NetworkPath(status: .satisfied, cause: nil), isOwn: { _ in false }, hasResolver: true)
    }

    mutating func run(seconds: Int64) {
        play(.begin)
        while true {
            let next = pending.indices.min { pending[$0].due < pending[$1].due }
            let answer = next.map { pending[$0].due } ?? .max
            let tick = machine.deadline ?? .max
            guard min(answer, tick) <= seconds * Self.second else { return }
            now = max(now, min(answer, tick))
            if let next, answer <= tick { play(pending.remove(at: next).event) } else { play(.tick) }
        }
    }

    private mutating func play(_ event: TargetMachine.Event) {
        let moment = Moment(monotonicNanoseconds: now, wallClockNanoseconds: now)
        for effect in machine.handle(event, in: localState, at: moment) { perform(effect) }
    }

    private mutating func perform(_ effect: TargetMachine.Effect) {
        switch effect {
        case .askRoute(let query):
            let route = ChosenRoute(interface: 2, gateway: IPAddress(v4: 0x0a00_0001), source: IPAddress(v4: 0x0a00_0002))
            answer(.route(query, .route(route)), after: 0)
        case .askNeighbor(let key): answer(.neighbor(key, .state(.reachable)), after: 0)
        case .askHost(let request):
            // Three datagrams, 150 ms apart.
            let isAnswered = (0..<3).contains { _ in isExchanged() }
            let state = HopBook.State(
                isAlive: isAnswered, reply: HostReply(isAnswered ? .answered : .silent), hasAnswered: true)
            answer(.host(request.query.host, state), after: isAnswered ? Self.roundTrip : 550_000_000)
        case .search(let request):
            // One packet reaches each router.
            let isAnswered = isExchanged()
            let router = WitnessBook.Witness(kind: .router, address: IPAddress(v4: 0xcb00_7101), distance: 2, time: now)
            answer(
                .searched(request.hop, WitnessBook.State(witness: isAnswered ? router : nil)),
                after: isAnswered ? Self.roundTrip : HopSearcher.patience)
        case .connect(let attempt):
            // The kernel sends the SYN again after one and two seconds (tcp_syn_linear_timeouts).
            guard let copy = (0..<3).first(where: { _ in isExchanged() }) else { return }
            let result = ProbeResult(id: attempt.id, roundTripNanoseconds: Self.roundTrip, retransmissions: copy)
            answer(.probe(result), after: Int64(copy) * Self.second + Self.roundTrip, attempt: attempt.id)
        case .cancel(let attempt): pending.removeAll { $0.attempt == attempt }
        case .publish(let update): if states.last != update.statusName { states.append(update.statusName) }
        case .report(let report):
            probes += 1
            if !report.succeeded { failedProbes += 1 }
        case .resolve, .readCounters, .noteAlive, .note: break
        }
    }

    private mutating func answer(_ event: TargetMachine.Event, after delay: Int64, attempt: UInt64? = nil) {
        pending.append(Pending(due: now + delay, event: event, attempt: attempt))
    }

    /// Whether a packet and its answer both arrive.
    private mutating func isExchanged() -> Bool {
        let arrives = { (dice: inout SplitMix64, loss: Int) in Int.random(in: 0..<100, using: &dice) >= loss }
        return arrives(&dice, lossPercent) && arrives(&dice, lossPercent)
    }
}
