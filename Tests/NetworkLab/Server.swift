import CLinux
import Glibc
import Synchronization

/// A TCP port of a host with one of the behaviors that a probe distinguishes. It is ready when made, and closed with this object.
public final class Server: Sendable {
    /// The server's behavior towards a client.
    public enum Behavior: Sendable {
        /// The server accepts, and holds each connection until the client closes it.
        case accepting
        /// The server listens and never accepts. The kernel completes handshakes until the queue is full.
        case queueing
        /// The server listens with a full queue. The kernel drops further handshakes, and connecting times out.
        case stuck
        /// The port is bound and does not listen. Connecting is refused, and no other program can bind the port.
        case closed
    }

    /// The port, whether the caller or the kernel chose it.
    public let port: UInt16
    private let socket: Descriptor
    /// For ``Behavior/stuck``: the connections that fill the queue.
    private let fillers: [Descriptor]
    /// The pipes of ``Behavior/accepting``. Closing `stop` ends the thread, and `accepted` has a byte for each connection.
    private let stop: Descriptor?
    private let accepted: Descriptor?

    init(_ behavior: Behavior, on host: LabHost, address: String, port: UInt16) throws {
        let socket = try host.perform { try bound(address, port) }
        self.socket = socket
        self.port = try localPort(socket)
        var fillers: [Descriptor] = []
        var stop: Descriptor?
        var accepted: Descriptor?
        switch behavior {
        case .accepting:
            try listen(socket, queue: 128)
            let (stopOutput, stopInput) = try Descriptor.pipe()
            let (acceptedOutput, acceptedInput) = try Descriptor.pipe()
            try detachThread { holdConnections(socket, stop: stopOutput, accepted: acceptedInput) }
            (stop, accepted) = (stopInput, acceptedOutput)
        case .queueing:
            try listen(socket, queue: 128)
        case .stuck:
            // A queue of 0 has room for one connection.
            try listen(socket, queue: 0)
            let local = try localAddress(socket)
            fillers.append(try host.perform { try connected(local) })
        case .closed:
            break
        }
        self.fillers = fillers
        self.stop = stop
        self.accepted = accepted
    }

    /// Closes the port, as a server does that ends. Connecting is refused from then on.
    public func close() {
        // The socket remains bound, and no longer listens (tcp_disconnect).
        shutdown(socket.number, Int32(SHUT_RDWR))
    }

    /// Waits for one more connection to an accepting server. - Returns: false if none comes in time.
    public func awaitConnection(within limit: Duration = .seconds(120)) throws -> Bool {
        guard let accepted else { throw LabError("this server does not accept") }
        guard try Deadline(in: limit).await(accepted.number) else { return false }
        var byte: UInt8 = 0
        return read(accepted.number, &byte, 1) == 1
    }
}

extension LabHost {
    /// Opens a TCP port on this host. With port 0 the kernel chooses. The address is numeric, and `::` takes connections of both
    /// families. This host must be able to connect to the address of a ``Server/Behavior/stuck`` server: with `::`, loopback has
    /// to be up.
    public func serve(_ behavior: Server.Behavior = .accepting, at address: String = "::", port: UInt16 = 0) throws -> Server {
        try Server(behavior, on: self, address: address, port: port)
    }
}

private func bound(_ address: String, _ port: UInt16) throws -> Descriptor {
    let isIPv6 = address.contains(":")
    let socket = try Descriptor(
        Glibc.socket(isIPv6 ? AF_INET6 : AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0), "socket")
    var on: Int32 = 1
    setsockopt(socket.number, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
    var storage = sockaddr_storage()
    let (valid, length) = withUnsafeMutableBytes(of: &storage) { bytes in
        if isIPv6 {
            var name = sockaddr_in6()
            name.sin6_family = sa_family_t(AF_INET6)
            name.sin6_port = port.bigEndian
            let valid = inet_pton(AF_INET6, address, &name.sin6_addr)
            bytes.storeBytes(of: name, as: sockaddr_in6.self)
            return (valid, MemoryLayout<sockaddr_in6>.size)
        }
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_port = port.bigEndian
        let valid = inet_pton(AF_INET, address, &name.sin_addr)
        bytes.storeBytes(of: name, as: sockaddr_in.self)
        return (valid, MemoryLayout<sockaddr_in>.size)
    }
    guard valid == 1 else { throw LabError("\(address): not a numeric address") }
    let code = withSocketAddress(&storage) { bind(socket.number, $0, socklen_t(length)) }
    guard code == 0 else { throw LabError("bind \(address) port \(port)", errno: errno) }
    return socket
}

private func listen(_ socket: Descriptor, queue: Int32) throws {
    guard Glibc.listen(socket.number, queue) == 0 else { throw LabError("listen", errno: errno) }
}

private func connected(_ address: sockaddr_storage) throws -> Descriptor {
    var address = address
    let family = Int32(address.ss_family)
    let socket = try Descriptor(Glibc.socket(family, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0), "socket")
    let length = family == AF_INET6 ? MemoryLayout<sockaddr_in6>.size : MemoryLayout<sockaddr_in>.size
    let code = withSocketAddress(&address) { connect(socket.number, $0, socklen_t(length)) }
    guard code == 0 else { throw LabError("filling the queue", errno: errno) }
    return socket
}

private func localAddress(_ socket: Descriptor) throws -> sockaddr_storage {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let code = withSocketAddress(&storage) { getsockname(socket.number, $0, &length) }
    guard code == 0 else { throw LabError("getsockname", errno: errno) }
    return storage
}

private func localPort(_ socket: Descriptor) throws -> UInt16 {
    // The port is at the same place in the addresses of both families.
    let storage = try localAddress(socket)
    return withUnsafeBytes(of: storage) { UInt16(bigEndian: $0.loadUnaligned(fromByteOffset: 2, as: UInt16.self)) }
}

private func withSocketAddress(_ storage: inout sockaddr_storage, _ body: (UnsafeMutablePointer<sockaddr>) -> Int32) -> Int32 {
    withUnsafeMutablePointer(to: &storage) { $0.withMemoryRebound(to: sockaddr.self, capacity: 1, body) }
}

/// Runs the thread of an accepting server until the writing end of `stop` is closed.
private func holdConnections(_ socket: Descriptor, stop: Descriptor, accepted: Descriptor) {
    var connections: [Int32] = []
    defer { connections.forEach { close($0) } }
    while true {
        var polled = ([stop.number, socket.number] + connections).map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        guard poll(&polled, nfds_t(polled.count), -1) > 0 || errno == EINTR else { return }
        if polled[0].revents != 0 { return }
        for entry in polled[2...] where entry.revents != 0 {
            var buffer = [UInt8](repeating: 0, count: 4096)
            if read(entry.fd, &buffer, buffer.count) <= 0 {
                close(entry.fd)
                connections.removeAll { $0 == entry.fd }
            }
        }
        guard polled[1].revents != 0 else { continue }
        let connection = accept(socket.number, nil, nil)
        // EINVAL: the socket no longer listens.
        if connection < 0 && errno == EINVAL { return }
        guard connection >= 0 else { continue }
        _ = fcntl(connection, F_SETFD, FD_CLOEXEC)
        connections.append(connection)
        var byte: UInt8 = 1
        _ = write(accepted.number, &byte, 1)
    }
}
