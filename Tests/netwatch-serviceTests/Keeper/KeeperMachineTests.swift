import Expectations
import Reachability
import Records
import Testing

@testable import netwatch_service

/// The keeper as a transcript: what the monitor reports → what the history and the readers receive.
@Suite struct KeeperMachineTests {
    private static let start: Int64 = 1_800_000_000_000

    @Test func `a result and a change of state are recorded, and readers receive the change`() throws {
        var keeper = try Keeper(["db.example:5432"])
        let effects = keeper.turn(
            250, results: [.init(target: 0, state: .up, roundTrip: 12, responseTime: 15, time: Self.start + 100)],
            events: [.server(TargetID(0), try Self.update("db.example:5432", .up, at: 100))])
        expectEqual(
            effects,
            [
                "publish server db.example:5432 up",
                "record begin 7 unknown +0, sample 7 up +100",
            ])
        expectEqual(keeper.state.targets[0].onBoard.state, .up)
        expectEqual(keeper.state.targets[0].onBoard.current.roundTrip, .microseconds(120))
        expectEqual(keeper.state.targets[0].onBoard.current.responseTime, .microseconds(150))
        expectEqual(keeper.turn(500), ["record"])
    }

    @Test func `an outage whose first state and result arrive in one turn is counted once`() throws {
        let intake = Intake(targets: 1)
        intake.put(.server(TargetID(0), try Self.update("db.example:5432", .unknown, at: 10)))
        intake.put(.probe(TargetID(0), try Self.failure(at: 20)))
        intake.put(.server(TargetID(0), try Self.update("db.example:5432", .down, at: 20)))
        intake.put(.probe(TargetID(0), try Self.failure(at: 120)))
        var batch = Intake.Batch()
        intake.take(&batch)
        var keeper = try Keeper(["db.example:5432"])
        let effects = keeper.names(keeper.state.turn(batch, at: Self.moment(250)))
        expectEqual(effects.last, "record begin 7 unknown +0, sample 7 down +20, sample 7 down +120")
    }

    @Test func `an incident is published after its commit`() throws {
        var keeper = try Keeper(["db.example:5432"])
        let incident = Self.incident("1")
        expectEqual(keeper.turn(0, events: [.incident(incident)]).first, "record incident 1")
        expectEqual(keeper.names(keeper.state.committed("1", 1)), ["publish incident 1 recorded: true"])
        expectEqual(keeper.state.incidents.shown.map(\.incident.id), ["1"])
    }

    @Test func `an incident is recorded with the numbers of its targets in the history, without the canary's`() throws {
        var keeper = try Keeper(["a.example:1", "b.example:1", "c.example:1"])
        let incident = Self.incident("1", members: TargetSet([0, 2, 3]))
        expectEqual(keeper.turn(0, events: [.incident(incident)]).first, "record incident 1 7 9")
    }

    @Test func `records have the names of their target, and an incident those of the only one`() throws {
        var keeper = try Keeper(["a.example:1", "db.example:5432"])
        var next = keeper.configuration
        let names = TargetIdentity(id: nil, name: "Database", group: "North", labels: ["team": "a"])
        (next.targets[1].name, next.targets[1].group, next.targets[1].labels) = (names.name, names.group, names.labels)
        let difference = ConfigurationDifference(
            from: (keeper.configuration, keeper.settings), to: (next, keeper.settings))
        keeper.state.change(to: next, difference, additions: [], replacements: [], at: Self.moment(0))
        let update = try Self.update("db.example:5432", .down, at: 0)
        expectEqual(keeper.state.identity(of: .server(TargetID(1), update)), names)
        expectEqual(keeper.state.identity(of: .server(TargetID(0), update)), TargetIdentity())
        expectEqual(keeper.state.identity(of: .server(TargetID(2), update)), nil)
        expectEqual(keeper.state.identity(of: .incident(Self.incident("1", members: TargetSet([1])))), names)
        // The subject is a target that is not monitored any more.
        expectEqual(keeper.state.identity(of: .incident(Self.incident("1", members: TargetSet([0])))), nil)
        expectEqual(keeper.state.targets.map(\.onBoard.identity), [TargetIdentity(), names])
        expectEqual(keeper.state.names.name(of: "db.example:5432"), "Database")
    }

    @Test func `an incident without a commit is published as not recorded`() throws {
        var keeper = try Keeper(["db.example:5432"])
        _ = keeper.turn(0, events: [.incident(Self.incident("1"))])
        expectEqual(keeper.state.deadline, 200_000_000)
        expectEqual(keeper.turn(200).first, "publish incident 1 recorded: false")
        expectEqual(keeper.names(keeper.state.committed("1", 1)), ["publish incident 1 recorded: true"])
    }

    @Test func `a maintenance window replaces the state of its targets`() throws {
        var configuration = Configuration()
        // 1,800,000,000 s is 2027-01-15 08:00:00 UTC.
        configuration.maintenance = [
            MaintenanceWindow(
                targets: ["db.example:5432"],
                schedule: .once(from: try LocalTime("2027-01-15T08:00:01Z"), to: try LocalTime("2027-01-15T08:00:02Z")))
        ]
        var keeper = try Keeper(["db.example:5432", "web.example:80"], configuration)
        _ = keeper.turn(0, events: [.server(TargetID(0), try Self.update("db.example:5432", .down, at: 0))])
        expectEqual(keeper.turn(1_000), ["record change 7 maintenance +1000"])
        expectEqual(keeper.state.targets.map { $0.onBoard.state }, [.maintenance, .unknown])
        expectEqual(keeper.turn(2_000), ["record change 7 down +2000"])
    }

    @Test func `another configuration keeps the history of targets by their keys`() throws {
        var keeper = try Keeper(["db.example:5432", "web.example:80"])
        _ = keeper.turn(0, events: [.server(TargetID(1), try Self.update("web.example:80", .up, at: 0))])
        var next = Configuration()
        next.targets = try ["web.example:80", "new.example:443"].map { try Keeper.target($0) }
        let difference = ConfigurationDifference(
            from: (keeper.configuration, keeper.settings), to: (next, next.targets.map(\.settings)))
        #expect(difference.removed == [0] && difference.added == [1])
        expectEqual(difference.retained, [.init(former: 1, next: 0)])
        let addition = KeeperMachine.NewTarget(
            configured: next.targets[1], monitor: TargetID(2), number: 9, bars: TargetBars(keeper.state.frame))
        keeper.state.change(to: next, difference, additions: [addition], replacements: [], at: Self.moment(250))
        expectEqual(keeper.state.targets.map(\.number), [8, 9])
        expectEqual(keeper.state.targets[0].update.statusName, .up)
        expectEqual(keeper.turn(250), ["record end 7 +0, begin 9 unknown +0"])
        // A late result of the removed target is ignored.
        let late = keeper.turn(500, results: [.init(target: 0, state: .up, roundTrip: 1, time: Self.start + 400)])
        expectEqual(late, ["record"])
    }

    @Test func `the bar of the day shows the outage`() throws {
        var keeper = try Keeper(["db.example:5432"])
        _ = keeper.turn(0, events: [.server(TargetID(0), try Self.update("db.example:5432", .down, at: 0))])
        _ = keeper.turn(20_000)
        let bars = keeper.state.targets[0].bars.bars
        expectEqual(bars.day.last?.state, .down)
        expectEqual(bars.quarter.last?.times[.down], 20_000)
    }

    @Test func `failures of the first seconds are unknown, and a reload changes the length of an outage`() throws {
        var keeper = try Keeper(["db.example:5432"], openAfter: .seconds(20))
        expectEqual(
            keeper.turn(250, events: [.server(TargetID(0), try Self.update("db.example:5432", .down, at: 100))]),
            ["publish server db.example:5432 down", "record begin 7 unknown +0, limit 7 20000"])
        expectEqual(keeper.turn(20_250), ["record change 7 down +20000"])
        var next = keeper.configuration
        next.targets[0].settings.openAfter = .seconds(5)
        let difference = ConfigurationDifference(
            from: (keeper.configuration, keeper.settings), to: (next, next.targets.map(\.settings)))
        keeper.state.change(to: next, difference, additions: [], replacements: [TargetID(1)], at: Self.moment(20_250))
        expectEqual(keeper.turn(20_500), ["record limit 7 5000"])
    }

    @Test func `an incident has the highest severity of its targets, and its records never precede others`() throws {
        var keeper = try Keeper(["a.example:1", "b.example:1"])
        var next = keeper.configuration
        (next.targets[0].severity, next.targets[1].severity) = (.warning, .critical)
        let difference = ConfigurationDifference(
            from: (keeper.configuration, keeper.settings), to: (next, next.targets.map(\.settings)))
        keeper.state.change(to: next, difference, additions: [], replacements: [], at: Self.moment(0))
        func states(_ effects: [KeeperMachine.Effect]) -> [String] {
            effects.compactMap { effect in
                guard case .publish(let event, _) = effect else { return nil }
                let milliseconds = event.moment.milliseconds - Self.start
                guard case .incident(let incident) = event else { return "other +\(milliseconds)" }
                return "\(incident.id) \(incident.severity?.rawValue ?? "none") +\(milliseconds)"
            }
        }
        func turn(_ milliseconds: Int64, _ events: [MonitorEvent]) -> [KeeperMachine.Effect] {
            let events = events.map { Intake.Batch.Event(event: $0, results: 0) }
            return keeper.state.turn(Intake.Batch(results: [], events: events), at: Self.moment(milliseconds))
        }
        expectEqual(states(turn(100, [.incident(Self.incident("1", members: TargetSet([0])))])), [])
        let update = try Self.update("a.example:1", .down, at: 180)
        expectEqual(states(turn(200, [.server(TargetID(0), update)])), ["other +180"])
        // It opened at 0, and is published after a record of 180.
        expectEqual(states(keeper.state.committed("1", 1)), ["1 warning +180"])
        _ = turn(300, [.incident(Self.incident("1", members: TargetSet([0, 1]), count: 2))])
        expectEqual(states(keeper.state.committed("1", 2)), ["1 critical +180"])
        // A target that was removed counts.
        _ = turn(400, [.incident(Self.incident("1", members: TargetSet([0]), count: 3))])
        expectEqual(states(turn(700, [])), ["1 critical +180"])
    }

    // MARK: The keeper in a test

    private struct Keeper {
        var state: KeeperMachine
        let configuration: Configuration
        let settings: [ProbeSettings]

        init(
            _ targets: [String], _ configuration: Configuration = Configuration(), openAfter: Duration = .zero
        ) throws {
            var configuration = configuration
            configuration.targets = try targets.map { try Self.target($0) }
            for place in configuration.targets.indices { configuration.targets[place].settings.openAfter = openAfter }
            var calendar = DayCalendar { _ in 0 }
            let frame = BarFrame(at: start, in: &calendar)
            let new = configuration.targets.enumerated().map { place, target in
                KeeperMachine.NewTarget(
                    configured: target, monitor: TargetID(place), number: 7 + place, bars: TargetBars(frame))
            }
            state = KeeperMachine(
                configuration, targets: new, canary: nil, ledgers: [:],
                recorder: HistoryRecorder(ClockReading(wall: start, monotonic: 0, bootTime: 0)), frame: frame, offset: { _ in 0 },
                at: moment(0))
            self.configuration = configuration
            settings = configuration.targets.map(\.settings)
        }

        static func target(_ text: String) throws -> ConfiguredTarget {
            ConfiguredTarget(endpoint: try Endpoint(text), settings: ProbeSettings(openAfter: .zero), origin: .standard)
        }

        mutating func turn(
            _ milliseconds: Int64, results: [HistoryRecorder.Result] = [], events: [MonitorEvent] = []
        ) -> [String] {
            let events = events.map { Intake.Batch.Event(event: $0, results: results.count) }
            return names(state.turn(Intake.Batch(results: results, events: events), at: moment(milliseconds)))
        }

        func names(_ effects: [KeeperMachine.Effect]) -> [String] {
            effects.map { effect in
                switch effect {
                case .record(let turn):
                    (["record"] + [turn.events.map(name).joined(separator: ", ")]).filter { !$0.isEmpty }
                        .joined(separator: " ")
                case .recordIncident(let incident, let members, _):
                    (["record incident \(incident.id)"] + members.numbers.map { "\($0)" }).joined(separator: " ")
                case .recordPath: "record path"
                case .withdraw(let time): "withdraw +\(time - start)"
                case .publish(.incident(let incident), let isRecorded):
                    "publish incident \(incident.id) recorded: \(isRecorded.map { "\($0)" } ?? "nil")"
                case .publish(.server(_, let update), _): "publish server \(update.endpoint.text) \(update.statusName.rawValue)"
                case .publish: "publish"
                case .ended: "ended"
                }
            }
        }

        private func name(_ event: HistoryEvent) -> String {
            switch event {
            case .begin(let target, let state, let time): "begin \(target) \(state) +\(time - start)"
            case .sample(let target, let sample): "sample \(target) \(sample.state) +\(sample.time - start)"
            case .change(let target, let state, let time): "change \(target) \(state) +\(time - start)"
            case .end(let target, let time): "end \(target) +\(time - start)"
            case .gap(let gap): "gap \(gap.reason.rawValue)"
            case .outageLimit(let target, let time): "limit \(target) \(time)"
            }
        }
    }

    private static func moment(_ milliseconds: Int64) -> Moment {
        Moment(monotonicNanoseconds: milliseconds * 1_000_000, wallClockNanoseconds: (start + milliseconds) * 1_000_000)
    }

    private static func update(_ text: String, _ state: StatusName, at milliseconds: Int64) throws -> ServerUpdate {
        ServerUpdate(
            endpoint: try Endpoint(text), statusName: state, cause: nil, since: moment(milliseconds), address: nil,
            interface: nil,
            roundTrip: nil, isInitial: false, moment: moment(milliseconds))
    }

    private static func failure(at milliseconds: Int64) throws -> ProbeReport {
        ProbeReport(
            endpoint: try Endpoint("db.example:5432"), cause: Cause(.tcp, .refused, detail: "the server refuses connections"),
            moment: moment(milliseconds))
    }

    private static func incident(_ id: String, members: TargetSet = TargetSet(), count: Int = 1) -> Incident {
        Incident(
            id: id, state: .open, scope: .server, subject: .init(.target, "db.example:5432"),
            cause: Cause(.tcp, .refused, detail: "the server refuses connections"), targetCount: count, targets: [],
            members: members,
            began: moment(0), ended: nil, moment: moment(0))
    }
}
