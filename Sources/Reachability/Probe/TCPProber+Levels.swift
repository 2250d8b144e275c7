internal import CLinux
internal import Certificates
internal import EventLoop
internal import Glibc

/// The TLS handshakes and HTTP exchanges on connections that are established.
extension TCPProber {
    private static let readSize = 16_384
    /// The number of reads for one connection in a turn, so that a server that sends without end delays no other probe.
    private static let readLimit = 4
    private static let errorLimit = 8
    private static let contextLimit = 16

    /// The time at which ``expireLevels(on:now:)`` has something to do; `nil` for never.
    var levelDeadline: Int64? { earliestLevelEnd == .max ? nil : earliestLevelEnd }

    /// Begins the levels on a new connection.
    ///
    /// - Returns: the result of the connection, or that of the levels if they have already failed.
    mutating func beginLevels(
        _ slot: Int, _ plan: LevelPlan, _ connected: ProbeResult, on loop: borrowing EventLoop, now: Moment
    ) -> ProbeResult? {
        guard let attempt = slots[slot]?.attempt else { return nil }
        let run = LevelRun(plan, deadline: attempt.deadline)
        keep(run.context)
        slots[slot]?.levels = Levels(run: run, connected: connected)
        levelSlots.insert(slot)
        return beginRun(slot, on: loop, now: now) ?? connected
    }

    /// Begins the levels of a connection that is established, or lets their TLS handshake wait.
    ///
    /// - Returns: the result if the levels have already failed.
    private mutating func beginRun(_ slot: Int, on loop: borrowing EventLoop, now: Moment) -> ProbeResult? {
        guard let connection = slots[slot], let run = connection.levels?.run else { return nil }
        if run.beginsWithTLS, !connection.isUnplaced, !connection.attempt.hasHandshakePlace {
            guard unplacedHandshakes < Self.unplacedHandshakeLimit else {
                slots[slot]?.levels?.isWaiting = true
                waitingHandshakes.append(connection.token)
                earliestLevelEnd = min(earliestLevelEnd, connection.attempt.latestStart)
                return nil
            }
            unplacedHandshakes += 1
            slots[slot]?.isUnplaced = true
        }
        run.connected(now.monotonicNanoseconds)
        if let failure = flush(slot, on: loop, isFirst: true, now: now) { return failure }
        return run.hasEnded ? end(slot, on: loop) : nil
    }

    /// Begins handshakes that wait, as far as others have ended.
    ///
    /// - Returns: the results of those that have already failed.
    mutating func startWaitingHandshakes(on loop: borrowing EventLoop, now: Moment) -> [ProbeResult] {
        guard !waitingHandshakes.isEmpty else { return [] }
        var results: [ProbeResult] = []
        var taken = 0
        while taken < waitingHandshakes.count {
            // The attempt may have ended.
            guard let slot = slot(of: waitingHandshakes[taken]), slots[slot]?.levels?.isWaiting == true else {
                taken += 1
                continue
            }
            guard unplacedHandshakes < Self.unplacedHandshakeLimit else { break }
            taken += 1
            slots[slot]?.levels?.isWaiting = false
            if let result = beginRun(slot, on: loop, now: now) { results.append(result) }
        }
        waitingHandshakes.removeFirst(taken)
        return results
    }

    /// Keeps the context for later probes: to load the system's authorities again takes up to 80 ms.
    private mutating func keep(_ context: TLSClientContext) {
        guard !contexts.contains(where: { $0 === context }) else { return }
        if contexts.count == Self.contextLimit { contexts.removeFirst() }
        contexts.append(context)
    }

    /// Reads what has arrived, and sends what follows from it.
    ///
    /// - Returns: the result if the levels have ended.
    mutating func proceed(
        _ slot: Int, _ ready: EventLoop.Ready, on loop: borrowing EventLoop, now: Moment
    ) -> ProbeResult? {
        guard let connection = slots[slot], let run = connection.levels?.run else { return nil }
        if connection.levels?.isConnecting == true { return continueRedirect(slot, on: loop, now: now) }
        let time = now.monotonicNanoseconds
        // Messages of routers about a connection do not end it, but epoll reports them until they are read.
        if ready.isBroken { for _ in 0..<Self.errorLimit where ErrorQueue.report(of: connection.socket) == nil { break } }
        withUnsafeTemporaryAllocation(byteCount: Self.readSize, alignment: 16) { buffer in
            for _ in 0..<Self.readLimit where !run.hasEnded {
                let count = recv(connection.socket, buffer.baseAddress, buffer.count, 0)
                if count > 0 {
                    run.receive(UnsafeRawBufferPointer(rebasing: buffer[..<count]), now: time)
                    // The socket is empty.
                    if count < buffer.count { break }
                } else if count == 0 {
                    run.inputEnded(time)
                } else if errno == EAGAIN {
                    break
                } else if errno != EINTR {
                    run.connectionFailed(errno)
                }
            }
        }
        if run.redirection != nil { return followRedirect(slot, on: loop, now: now) }
        if let failure = flush(slot, on: loop, now: now) { return failure }
        return run.hasEnded ? end(slot, on: loop) : nil
    }

    /// Opens another connection to the same address, at the port of the redirect.
    private mutating func followRedirect(_ slot: Int, on loop: borrowing EventLoop, now: Moment) -> ProbeResult? {
        guard let connection = slots[slot], let run = connection.levels?.run, let url = run.redirection else { return nil }
        var attempt = connection.attempt
        if !run.usesProxy { attempt.port = url.endpoint.port }
        loop.remove(connection.socket)
        close(connection.socket)
        let token = takeToken(slot)
        slots[slot]?.attempt = attempt
        slots[slot]?.token = token
        slots[slot]?.socket = -1
        slots[slot]?.levels?.isConnecting = true
        slots[slot]?.levels?.output = []
        switch opened(attempt, token, on: loop) {
        case .success(let socket):
            slots[slot]?.socket = socket
            run.willConnect(now.monotonicNanoseconds)
            return nil
        case .failure(let error):
            run.connectionFailed(error.errno)
            return end(slot, on: loop)
        }
    }

    private mutating func continueRedirect(_ slot: Int, on loop: borrowing EventLoop, now: Moment) -> ProbeResult? {
        guard let connection = slots[slot], let run = connection.levels?.run else { return nil }
        guard let result = outcome(of: connection, now: now) else {
            do { try loop.change(connection.socket, interest: .writeOnce, token: connection.token) } catch {
                run.connectionFailed(error.errno)
                return end(slot, on: loop)
            }
            return nil
        }
        slots[slot]?.levels?.isConnecting = false
        if result.errno == 0 {
            run.didConnect(now.monotonicNanoseconds)
            return beginRun(slot, on: loop, now: now)
        }
        run.connectionFailed(result.errno)
        return run.hasEnded ? end(slot, on: loop) : nil
    }

    /// Ends the levels whose time is over.
    ///
    /// - Returns: their results.
    mutating func expireLevels(on loop: borrowing EventLoop, now: Moment) -> [ProbeResult] {
        let time = now.monotonicNanoseconds
        guard earliestLevelEnd <= time else { return [] }
        var results: [ProbeResult] = []
        earliestLevelEnd = .max
        // A fixed order, so that a recording has the results in the order of the attempts.
        for slot in levelSlots.sorted() {
            guard let connection = slots[slot], let levels = connection.levels else { continue }
            let levelEnd = levels.isWaiting ? connection.attempt.latestStart : levels.run.deadline
            guard levelEnd <= time else {
                earliestLevelEnd = min(earliestLevelEnd, levelEnd)
                continue
            }
            if levels.isWaiting {
                // The server would not have enough time to answer.
                loop.remove(connection.socket)
                finish(slot)
                results.append(ProbeResult(id: connection.attempt.id, errno: EMFILE, call: ProbeResult.queue))
                continue
            }
            levels.run.deadlineReached(Self.progress(of: connection.socket, hasUnsentBytes: !levels.output.isEmpty))
            if let result = end(slot, on: loop) { results.append(result) }
        }
        return results
    }

    private static func progress(of socket: Int32, hasUnsentBytes: Bool) -> ConnectionProgress? {
        var state = netwatch_tcp_state()
        guard netwatch_tcp_state_of(socket, &state) == 0 else { return nil }
        return ConnectionProgress(
            unacknowledged: Int(state.unacknowledged),
            // What was sent again because its acknowledgment came late was not lost.
            retransmissions: max(0, Int(state.retransmissions) - Int(state.duplicates)),
            bytesAcknowledged: Int(exactly: state.bytes_acknowledged), roundTripMicroseconds: Int(state.round_trip),
            sinceSentMilliseconds: Int(state.since_sent), outOfOrder: Int(state.out_of_order), hasUnsentBytes: hasUnsentBytes)
    }

    /// Sends the bytes of the levels, and watches the socket for what they wait for.
    ///
    /// - Returns: the result if the system refuses to watch the socket.
    private mutating func flush(
        _ slot: Int, on loop: borrowing EventLoop, isFirst: Bool = false, now: Moment
    ) -> ProbeResult? {
        guard let connection = slots[slot], var levels = connection.levels else { return nil }
        levels.output += levels.run.takeOutput()
        // The last bytes wait for the FIN of close(2), and leave in one segment with it (MSG_MORE, send(2)).
        let isLast = levels.run.hasEnded && levels.run.endsGracefully
        let flags = Int32(MSG_NOSIGNAL) | (isLast ? Int32(MSG_MORE) : 0)
        while !levels.output.isEmpty {
            let count = levels.output.withUnsafeBytes { send(connection.socket, $0.baseAddress, $0.count, flags) }
            if count > 0 {
                levels.run.noteSent(count)
                levels.output.removeFirst(count)
            } else if errno == EINTR {
                continue
            } else {
                // The server may have answered before it has closed the connection: its bytes are read before the error.
                if errno != EAGAIN { levels.output = [] }
                break
            }
        }
        let wasWriting = levels.isWriting
        levels.isWriting = !levels.output.isEmpty
        slots[slot]?.levels = levels
        earliestLevelEnd = min(earliestLevelEnd, levels.run.deadline)
        guard !levels.run.hasEnded, isFirst || wasWriting != levels.isWriting else { return nil }
        do {
            let interest: EventLoop.Interest = levels.isWriting ? [.read, .write] : .read
            try loop.change(connection.socket, interest: interest, token: connection.token)
        } catch {
            finish(slot)
            return ProbeResult(id: connection.attempt.id, errno: error.errno, call: error.call)
        }
        return nil
    }

    private mutating func end(_ slot: Int, on loop: borrowing EventLoop) -> ProbeResult? {
        guard let connection = slots[slot], let levels = connection.levels else { return nil }
        // A server whose answer is complete sees an ordinary end of the connection rather than a reset.
        if levels.run.endsGracefully { SocketOptions.closeGracefully(connection.socket) }
        loop.remove(connection.socket)
        finish(slot)
        var result = levels.connected
        result.levels = levels.run.result
        result.levels?.hasSmallSegments = connection.attempt.hasSmallSegments
        return result
    }
}
