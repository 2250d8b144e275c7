import EventLoop
import Glibc

/// A VPN in user space: tun devices of two hosts, and a thread that carries packets between them. The devices are down.
public final class UserTunnel: Sendable {
    private let isSilent = Locked<Bool>(false)
    private let delay = Locked<Duration>(.zero)
    private let stop: Locked<Descriptor?>
    private let ended: Descriptor

    /// Opens a device on each host. A persistent client device remains after ``end()``, without a carrier.
    public init(_ client: LabHost, _ clientName: String, _ far: LabHost, _ farName: String, persistent: Bool = false) throws {
        let near = try TunDevice(clientName, .ip, type: nil, persistent: persistent, on: client)
        let other = try TunDevice(farName, .ip, type: nil, persistent: false, on: far)
        let (stopOutput, stopInput) = try Descriptor.pipe()
        let (endOutput, endInput) = try Descriptor.pipe()
        stop = Locked(stopInput)
        ended = endOutput
        let (isSilent, delay) = (isSilent, delay)
        try detachThread {
            carry(near, other, stop: stopOutput, isSilent: { isSilent.withLock { $0 } }, delay: { delay.withLock { $0 } })
            withExtendedLifetime(endInput) {}
        }
    }

    /// Discards all packets from now on: the far end is dead, and the client's program still runs.
    public func silence() {
        isSilent.withLock { $0 = true }
    }

    /// Carries packets again after ``silence()``.
    public func resume() {
        isSilent.withLock { $0 = false }
    }

    /// Delays each packet from now on, in both directions.
    public func delay(by duration: Duration) {
        delay.withLock { $0 = duration }
    }

    /// Ends the program of the VPN. Both devices are closed when this returns.
    public func end() throws {
        stop.withLock { $0 = nil }
        guard try Deadline(in: .seconds(10)).await(ended.number) else { throw LabError("the tunnel's thread does not end") }
    }
}

private func carry(_ near: TunDevice, _ far: TunDevice, stop: Descriptor, isSilent: () -> Bool, delay: () -> Duration) {
    // Packets on their way, in the order of their arrival.
    var packets: [(due: ContinuousClock.Instant, to: Int32, bytes: [UInt8])] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    let ends = [near.descriptor.number, far.descriptor.number]
    var polled = ([stop.number] + ends).map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
    while true {
        let wait = packets.first.map { max(.zero, ContinuousClock.now.duration(to: $0.due)) / .milliseconds(1) }
        guard poll(&polled, 3, wait.map { Int32($0.rounded(.up)) } ?? -1) >= 0 || errno == EINTR else { return }
        while let first = packets.first, first.due <= .now {
            _ = write(first.to, first.bytes, first.bytes.count)
            packets.removeFirst()
        }
        if polled[0].revents != 0 { return }
        for index in 0...1 where polled[index + 1].revents & Int16(POLLIN) != 0 {
            let count = read(ends[index], &buffer, buffer.count)
            guard count > 0, !isSilent() else { continue }
            let delay = delay()
            if delay == .zero, packets.isEmpty {
                _ = write(ends[1 - index], buffer, count)
            } else {
                packets.append((.now + delay, ends[1 - index], Array(buffer[..<count])))
            }
        }
    }
}
