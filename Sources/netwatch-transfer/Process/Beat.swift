import CLinux
import Console
import EventLoop
import Glibc
import Reachability

/// The main loop of `beat`: it runs the command, passes on its output and signals, and waits for the courier of the reports.
final class Beat {
    /// The time for the courier to end after its deadline: it syncs files.
    private static let grace = Duration.seconds(2)
    /// The time for the session's end, in nanoseconds.
    private static let endLimit: Int64 = 1_000_000_000
    /// The time in which the same signal counts once, in nanoseconds.
    private static let repetition: Int64 = 500_000_000
    /// The signals that the command receives in the place of this program, besides those of ``Signals``.
    private static let passed: [Int32] = [SIGQUIT, SIGUSR1, SIGUSR2]

    private let plan: BeatPlan
    private let settings: ReportCourier.Settings
    private let timeout: Duration
    private let isQuiet: Bool
    private let signals: Signals
    /// The signals that were blocked when the program was started.
    private let blocked: Signals.Mask
    private let waker: Waker
    private var courier: ReportCourier?
    private var courierFailure: Failure?
    /// The signal that has ended the wait for the service.
    private var stopSignal: Int32?
    private var lastSignal: (number: Int32, time: Int64)?
    /// The text of a report that has come from standard input.
    private let input: String

    /// - Throws: ``Failure`` with code 71 if the system has no descriptor left, and with 74 if standard input cannot be read. Signals are as before then.
    init(_ plan: BeatPlan, _ settings: ReportCourier.Settings, timeout: Duration, isQuiet: Bool) throws(Failure) {
        (self.plan, self.settings, self.timeout, self.isQuiet) = (plan, settings, timeout, isQuiet)
        blocked = .current
        // Signals still end the program while it reads.
        if case .report(_, .standardInput) = plan.action { input = try Self.standardInput() } else { input = "" }
        // A program that ignores it does not see its children end.
        netwatch_signal_default(SIGCHLD)
        // A command in the background of a shell without job control ignores SIGINT, as it would without this program.
        let ignored = Signals.resetIgnored()
        defer { Signals.ignore(ignored) }
        do throws(Failure) {
            signals = try Signals(and: Self.passed + [SIGCHLD])
            waker = try MainLoop.makeWaker()
        } catch {
            blocked.restore()
            throw error
        }
    }

    /// Runs the plan. - Returns: The exit code of the program.
    func run() -> Int32 {
        switch plan.action {
        case .run(let command, let keepsOutput): return run(command, keepsOutput)
        case .report(let outcome, let body):
            let text =
                switch body {
                case .text(let text): text
                case .standardInput: input
                }
            submit(outcome, Moment.now, body: text)
            wait(until: Moment.now.advanced(by: timeout + Self.grace), for: nil)
            let isDelivered = report()
            if let stopSignal { Signals.end(by: stopSignal) }
            return isDelivered ? ExitCode.holds : ExitCode.doesNotHold
        }
    }

    // MARK: A command

    private func run(_ command: [String], _ keepsOutput: Bool) -> Int32 {
        let start = Moment.now
        let running: RunningCommand
        do throws(Failure) {
            running = try RunningCommand(command, keepsOutput: keepsOutput, blocking: blocked)
        } catch {
            StandardError.report(error)
            submit(.code(Int(error.code)), start, body: error.line + "\n")
            wait(until: Moment.now.advanced(by: timeout + Self.grace), for: nil)
            report()
            return error.code
        }
        submit(.start, start, body: "")
        wait(until: nil, for: running)
        let code = running.ending?.code ?? ExitCode.internalError
        var end = Moment.now
        // A clock that was set back does not turn the order of both around.
        if end.wallClockNanoseconds <= start.wallClockNanoseconds {
            end = Moment(
                monotonicNanoseconds: end.monotonicNanoseconds, wallClockNanoseconds: start.wallClockNanoseconds + 1)
        }
        submit(.code(Int(code)), end, body: keepsOutput || running.isKilled ? running.output : "")
        wait(until: end.advanced(by: timeout + Self.grace), for: running)
        report()
        return code
    }

    private static func standardInput() throws(Failure) -> String {
        var tail = OutputTail()
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = read(STDIN_FILENO, &buffer, buffer.count)
            if count > 0 { tail.append(buffer[..<count]) }
            if count == 0 { return tail.text() }
            guard count > 0 || errno == EINTR else {
                throw Failure(ExitCode.inputOutput, "standard input: cannot be read: \(errorText(errno))")
            }
        }
    }

    // MARK: The reports

    private func submit(_ outcome: HeartbeatReport.Outcome, _ moment: Moment, body: String) {
        do throws(Failure) {
            if courier == nil { courier = try ReportCourier(settings, waking: waker) }
            courier?.submit(
                HeartbeatReport(name: plan.name, outcome: outcome, time: moment.wallClockNanoseconds, body: body),
                happened: moment, until: moment.advanced(by: timeout).monotonicNanoseconds)
        } catch {
            courierFailure = error
        }
    }

    /// Writes the lines about the reports, and ends the session. - Returns: Whether the last report was delivered.
    @discardableResult
    private func report() -> Bool {
        guard let courier else {
            if !isQuiet, let courierFailure { StandardError.note("beat: \(plan.name): not reported: \(courierFailure.message)") }
            return false
        }
        courier.cancel()
        let summary = courier.summary
        var lines = summary.lines(plan.name, directory: settings.directory ?? "")
        if !courier.isIdle {
            lines.append("\(plan.name): the report may be lost: \(settings.directory ?? "the disk") does not answer")
        }
        if !isQuiet { for line in lines { StandardError.note("beat: \(line)") } }
        let hasEnded = Locked(false)
        courier.close { [waker] in
            hasEnded.withLock { $0 = true }
            waker.wake()
        }
        let limit = MonotonicClock.now() + Self.endLimit
        while !hasEnded.withLock({ $0 }), MonotonicClock.now() < limit {
            var polling = Polling()
            _ = polling.add(waker.descriptor, Int32(POLLIN))
            polling.wait(until: limit)
            waker.acknowledge()
        }
        return summary.isDelivered
    }

    // MARK: The loop

    /// Waits for the end of the command, if it has not ended yet, or else for the courier and the readers of the command's output. The courier is awaited
    /// until the deadline at most; `nil` while the command runs.
    private func wait(until deadline: Moment?, for command: RunningCommand?) {
        let waitsForCommand = command.map { $0.ending == nil } ?? false
        var limit = deadline?.monotonicNanoseconds
        var isReported = false
        while true {
            if waitsForCommand {
                if command?.reap() == true {
                    // A signal that has ended the command too does not end the wait for the service.
                    handleSignals(command)
                    return
                }
            } else {
                isReported = isReported || courier?.isIdle ?? true || limit.map { MonotonicClock.now() >= $0 } ?? true
                // Only the readers of the output are awaited then, unless a signal asks for the end.
                if isReported {
                    command?.stopReading()
                    if stopSignal != nil || command?.isDrained ?? true { return }
                    limit = nil
                }
            }
            var polling = Polling()
            let signal = polling.add(signals.descriptor, Int32(POLLIN))
            _ = polling.add(waker.descriptor, Int32(POLLIN))
            let places = command?.watch(&polling)
            polling.wait(until: limit)
            waker.acknowledge()
            if polling.isReady(signal) { handleSignals(waitsForCommand ? command : nil) }
            for number in places.flatMap({ command?.advance(polling, $0) }) ?? [] where !isQuiet {
                StandardError.note("beat: the output of the command cannot be passed on: \(errorText(number))")
            }
        }
    }

    private func handleSignals(_ command: RunningCommand?) {
        while let (number, isOfProcess) = signals.nextWithSender() {
            guard number != SIGCHLD else { continue }
            let now = MonotonicClock.now()
            defer { lastSignal = (number, now) }
            if let command {
                // The terminal sends its signals to the command itself.
                if isOfProcess { command.pass(on: number) }
            } else if Signals.isEnding(number) || number == SIGQUIT {
                // timeout(1) sends a signal twice.
                if let lastSignal, lastSignal.number == number, now - lastSignal.time < Self.repetition { continue }
                stopSignal = stopSignal ?? number
                courier?.cancel()
            }
        }
    }
}
