internal import CAres
internal import Glibc

/// The functions that c-ares calls. Each passes its call to the object that the channel was created with.
///
/// c-ares calls them only inside a call of its own functions, so they run on the loop's thread.
enum DNSTrampolines {
    /// The socket functions, in memory that is never freed: c-ares refers to it as long as a channel exists.
    // The pointer is set once and its contents never change.
    nonisolated(unsafe) static let socketFunctions: UnsafeMutablePointer<ares_socket_functions> = {
        let functions = UnsafeMutablePointer<ares_socket_functions>.allocate(capacity: 1)
        functions.initialize(
            to: ares_socket_functions(
                asocket: { family, type, protocolNumber, sockets in
                    DNSTrampolines.sockets(sockets)?.open(family, type, protocolNumber) ?? -1
                },
                aclose: { descriptor, sockets in
                    DNSTrampolines.sockets(sockets)?.close(descriptor)
                    return 0
                },
                aconnect: { descriptor, name, size, sockets in
                    guard let name, let sockets = DNSTrampolines.sockets(sockets) else { return -1 }
                    return sockets.connect(descriptor, to: UnsafeRawBufferPointer(start: name, count: Int(size)))
                },
                arecvfrom: { descriptor, bytes, size, _, name, nameSize, sockets in
                    guard let bytes, let sockets = DNSTrampolines.sockets(sockets) else { return -1 }
                    let buffer = UnsafeMutableRawBufferPointer(start: bytes, count: size)
                    return sockets.receive(descriptor, into: buffer, from: name, nameSize)
                },
                asendv: { descriptor, vectors, count, sockets in
                    guard let vectors, let sockets = DNSTrampolines.sockets(sockets) else { return -1 }
                    return sockets.send(descriptor, UnsafeBufferPointer(start: vectors, count: Int(count)))
                }))
        return functions
    }()

    /// Passes the descriptor's new interest to the sockets.
    static let stateChanged: @convention(c) (UnsafeMutableRawPointer?, Int32, Int32, Int32) -> Void = {
        sockets, descriptor, reads, writes in
        DNSTrampolines.sockets(sockets)?.setInterest(descriptor, reads: reads != 0, writes: writes != 0)
    }

    /// Ends a question, and releases it. c-ares calls this once for each question.
    static let answered: @convention(c) (UnsafeMutableRawPointer?, Int32, Int32, UnsafeMutablePointer<UInt8>?, Int32) -> Void = {
        question, status, _, bytes, count in
        guard let question else { return }
        let answer = bytes.map { UnsafeBufferPointer(start: $0, count: Int(max(0, count))) }
        Unmanaged<DNSQuestion>.fromOpaque(question).takeRetainedValue().end(status, answer)
    }

    private static func sockets(_ pointer: UnsafeMutableRawPointer?) -> DNSSockets? {
        pointer.map { Unmanaged<DNSSockets>.fromOpaque($0).takeUnretainedValue() }
    }
}
