internal import COpenSSL
internal import Glibc

/// Every function that OpenSSL calls. Each finds its object, asks it, and answers; none blocks, throws or traps.
enum TLSCallbacks {
    /// SSL_CTX_set_cert_verify_callback(3): 1 is trusted, 0 is not.
    static let verify: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32 = { context, argument in
        guard let context, let argument else { return 0 }
        return Unmanaged<HandshakeWatch>.fromOpaque(argument).takeUnretainedValue().verify(context) ? 1 : 0
    }

    /// SSL_CTX_set_cert_cb(3): the server has asked for a certificate. 1 goes on with the one that is set, or none; 0 ends the handshake.
    static let certificateRequested: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32 = { ssl, argument in
        guard let ssl, let argument else { return 1 }
        return Unmanaged<HandshakeWatch>.fromOpaque(argument).takeUnretainedValue().certificateWasRequested(ssl) ? 1 : 0
    }

    /// SSL_CTX_set_info_callback(3), which has no argument of its own: alerts, and the moment before the first message.
    static let info: @convention(c) (OpaquePointer?, Int32, Int32) -> Void = { ssl, place, value in
        guard let ssl, place & (SSL_CB_HANDSHAKE_START | SSL_CB_ALERT) != 0, let watch = HandshakeWatch.of(ssl) else { return }
        if place & SSL_CB_HANDSHAKE_START != 0 { watch.handshakeStarts(ssl) }
        guard place & SSL_CB_ALERT != 0 else { return }
        if place & SSL_CB_READ != 0 {
            watch.alertArrived(level: value >> 8, description: value & 0xFF)
        } else {
            watch.alertSent(level: value >> 8)
        }
    }

    /// CRYPTO_get_ex_new_index(3): an SSL_CTX is freed, and with it its hold on its watch.
    static let release:
        @convention(c) (
            UnsafeMutableRawPointer?, UnsafeMutableRawPointer?, UnsafeMutablePointer<CRYPTO_EX_DATA>?, Int32, Int,
            UnsafeMutableRawPointer?
        ) -> Void = { _, held, _, _, _, _ in
            if let held { Unmanaged<HandshakeWatch>.fromOpaque(held).release() }
        }

    /// pem_password_cb(3): the NUL-terminated passphrase that is the argument. Without one the answer is "none": OpenSSL's own
    /// callback would ask on the terminal.
    static let passphrase: @convention(c) (UnsafeMutablePointer<CChar>?, Int32, Int32, UnsafeMutableRawPointer?) -> Int32 = {
        buffer, size, _, argument in
        guard let buffer, let argument else { return -1 }
        let text = argument.assumingMemoryBound(to: CChar.self)
        let count = strlen(text)
        guard count <= Int(size) else { return -1 }
        memcpy(buffer, text, count)
        return Int32(count)
    }
}
