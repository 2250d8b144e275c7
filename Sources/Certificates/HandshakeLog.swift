internal import COpenSSL
internal import EventLoop
internal import Glibc

/// The facts of a handshake that libcurl drives, as a ``TLSClient`` would have them, so that a failure has the same cause.
///
/// The ``HandshakeWatch`` of the connection completes it. Reading OpenSSL's BIO shows the bytes, the end of file and errno, which
/// libcurl does not report.
package final class HandshakeLog: Sendable {
    private struct State {
        var facts: TLSHandshakeFacts
        var firstBytes = HandshakeFirstBytes()
        var hasStarted = false
        /// The socket of the connection; `nil` if it is not known.
        var socket: Int32?
        /// The reason for which no more bytes of the server can be read.
        var readingEnd: TLSHandshakeEnd?
    }

    /// The bytes of a record's header (RFC 8446 section 5.1), after which OpenSSL knows whether it reads a record.
    private static let recordHeader = 5

    private let state: Locked<State>

    /// Creates the log of a connection to a server of this name.
    package init(serverName: String) { state = Locked(State(facts: TLSHandshakeFacts(serverName: serverName))) }

    /// The facts so far.
    package var facts: TLSHandshakeFacts {
        state.withLock { state in
            var facts = state.facts
            state.firstBytes.describe(in: &facts)
            if !facts.isComplete { facts.version = facts.version ?? state.firstBytes.olderVersion }
            return facts
        }
    }

    /// Determines how the handshake ended, or how the connection was ended after it.
    ///
    /// - Parameters:
    ///   - isRefused: whether this side has refused the certificate.
    ///   - isTimedOut: whether the time for the connection has passed.
    /// - Returns: The event; `nil` if TLS is not the reason.
    package func end(isRefused: Bool, isTimedOut: Bool) -> TLSHandshakeEnd? {
        state.withLock { state in
            guard state.hasStarted else { return nil }
            if isRefused { return .completed }
            if state.facts.alert?.isFatal == true { return .protocolError }
            if state.facts.isComplete {
                // In TLS 1.3, a server refuses a client without a certificate after the handshake.
                return state.facts.isCertificateRequested && !isTimedOut ? state.readingEnd : nil
            }
            if isTimedOut { return .deadline }
            return state.readingEnd ?? (state.facts.protocolError == nil ? nil : .protocolError)
        }
    }

    /// Notes the socket of the connection whose handshake begins.
    package func use(_ socket: Int32?) { state.withLock { $0.socket = socket } }

    // MARK: OpenSSL's callbacks

    /// Begins the log of the first handshake of a connection.
    func begins(_ ssl: OpaquePointer) {
        let isFirst = state.withLock { state in
            guard !state.facts.isComplete else { return false }
            state = State(
                facts: TLSHandshakeFacts(serverName: state.facts.serverName), hasStarted: true, socket: state.socket)
            return true
        }
        guard isFirst, let bio = SSL_get_rbio(ssl) else { return }
        BIO_set_callback_arg(bio, Unmanaged.passUnretained(self).toOpaque().assumingMemoryBound(to: CChar.self))
        BIO_set_callback_ex(bio, TLSCallbacks.transport)
    }

    /// Notes that this side has finished the handshake.
    func completes(_ ssl: OpaquePointer) {
        if let bio = SSL_get_rbio(ssl) { BIO_set_callback_ex(bio, nil) }
        update { facts in
            facts.isComplete = true
            facts.noteParameters(of: ssl)
        }
    }

    /// Notes the reason for which OpenSSL has ended the handshake.
    func fails(_ reason: TLSProtocolError) { update { $0.protocolError = $0.protocolError ?? reason } }

    func update(_ change: (inout TLSHandshakeFacts) -> Void) { state.withLock { change(&$0.facts) } }

    /// Notes bytes that were written.
    func sent(_ bytes: UnsafeRawBufferPointer) { state.withLock { $0.firstBytes.noteSent(bytes) } }

    /// Notes bytes that were read.
    ///
    /// OpenSSL reads five bytes of what is no record, and then fails. The bytes behind them show the protocol. They are read from the
    /// socket, and stay in its buffer: libcurl waits for an event after a read of its BIO that finds no bytes, although OpenSSL has
    /// failed.
    func received(_ bytes: UnsafeRawBufferPointer) {
        state.withLock { state in
            state.facts.bytesReceived += bytes.count
            state.firstBytes.noteReceived(bytes)
            let missing = state.firstBytes.missingCount
            guard missing > 0, state.facts.bytesReceived >= Self.recordHeader, let socket = state.socket else { return }
            var further = [UInt8](repeating: 0, count: missing)
            let count = recv(socket, &further, missing, Int32(MSG_PEEK | MSG_DONTWAIT))
            guard count > 0 else { return }
            state.facts.bytesReceived += count
            state.firstBytes.noteReceived(further.prefix(count))
        }
    }

    func readingEnded(_ end: TLSHandshakeEnd) { state.withLock { $0.readingEnd = end } }
}
