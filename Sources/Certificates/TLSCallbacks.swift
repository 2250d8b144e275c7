internal import COpenSSL
internal import Glibc

/// The C callbacks that OpenSSL calls. Each forwards to its Swift object; none blocks, throws or traps.
enum TLSCallbacks {
    /// Verifies the peer (SSL_CTX_set_cert_verify_callback(3)). Returns 1 if it is trusted, else 0.
    static let verify: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32 = { context, argument in
        guard let context, let argument else { return 0 }
        return Unmanaged<HandshakeWatch>.fromOpaque(argument).takeUnretainedValue().verify(context) ? 1 : 0
    }

    /// Called when the server requests a client certificate (SSL_CTX_set_cert_cb(3)). 1 continues with the one that is set, or
    /// without one; 0 ends the handshake.
    static let certificateRequested: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32 = { ssl, argument in
        guard let ssl, let argument else { return 1 }
        return Unmanaged<HandshakeWatch>.fromOpaque(argument).takeUnretainedValue().certificateWasRequested(ssl) ? 1 : 0
    }

    /// Called for alerts, before the first message, and at the end of the handshake (SSL_CTX_set_info_callback(3)). It has no user
    /// argument.
    static let info: @convention(c) (OpaquePointer?, Int32, Int32) -> Void = { ssl, place, value in
        let places = SSL_CB_HANDSHAKE_START | SSL_CB_HANDSHAKE_DONE | SSL_CB_ALERT | SSL_CB_EXIT
        guard let ssl, place & places != 0, let watch = HandshakeWatch.of(ssl) else { return }
        if place & SSL_CB_HANDSHAKE_START != 0 { watch.handshakeStarts(ssl) }
        if place & SSL_CB_HANDSHAKE_DONE != 0 { watch.handshakeIsDone(ssl) }
        if place & SSL_CB_EXIT != 0, value <= 0 { watch.handshakeStops() }
        guard place & SSL_CB_ALERT != 0 else { return }
        if place & SSL_CB_READ != 0 {
            watch.alertArrived(ssl, level: value >> 8, description: value & 0xFF)
        } else {
            watch.alertSent(level: value >> 8)
        }
    }

    /// Called for each read and write of a connection, during its handshake (BIO_set_callback_ex(3)). It returns the result of the
    /// call, which stays unchanged.
    static let transport: BIO_callback_fn_ex = { bio, operation, bytes, count, _, _, result, processed in
        guard operation & BIO_CB_RETURN != 0, let bio, let argument = BIO_get_callback_arg(bio) else { return Int(result) }
        let error = errno
        let log = Unmanaged<HandshakeLog>.fromOpaque(argument).takeUnretainedValue()
        let moved = result > 0 ? min(processed?.pointee ?? 0, count) : 0
        switch operation & ~BIO_CB_RETURN {
        case BIO_CB_WRITE: log.sent(UnsafeRawBufferPointer(start: bytes, count: moved))
        case BIO_CB_READ where moved > 0:
            log.received(UnsafeRawBufferPointer(start: bytes, count: moved))
        case BIO_CB_READ where BIO_test_flags(bio, BIO_FLAGS_SHOULD_RETRY) == 0:
            log.readingEnded(result == 0 ? .endOfFile : .systemError(error))
        default: break
        }
        return Int(result)
    }

    /// Called when a server requests a certificate of a client with one (SSL_CTX_set_cert_cb(3)). Returns 1: the handshake continues, with the
    /// certificate or without it.
    static let identityRequested: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32 = { ssl, _ in
        if let ssl { TLSHandshakeNotes.of(ssl)?.identityRequested(ssl) }
        return 1
    }

    /// Collects the facts of the server's certificates (SSL_CTX_set_cert_verify_callback(3)). Returns 1, so that the handshake
    /// continues, or 0 if it would cost too much.
    static let collect: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32 = { context, _ in
        guard let context,
            let ssl = X509_STORE_CTX_get_ex_data(context, SSL_get_ex_data_X509_STORE_CTX_idx()).map({ OpaquePointer($0) }),
            let notes = TLSHandshakeNotes.of(ssl)
        else { return 1 }
        OpenSSLErrors.contained {
            notes.certificatesArrived(PeerChain(context, securityLevel: SSL_get_security_level(ssl)), ssl: ssl)
        }
        return notes.facts.excess == nil ? 1 : 0
    }

    /// Called once at the end of the server's part of the handshake, with a stapled response or without one
    /// (SSL_CTX_set_tlsext_status_cb(3)). Returns 1: the handshake continues.
    static let stapledResponse: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32 = { ssl, _ in
        if let ssl { TLSHandshakeNotes.of(ssl)?.readStapledResponse(of: ssl) }
        return 1
    }

    /// Called for each error of a chain, and for each valid certificate (X509_STORE_CTX_set_verify_cb(3)). It continues after
    /// each error of the chain itself, except for those that make the rest pointless. The authority of a revocation list is verified in a context of its own, without a
    /// collection; there, an error is final.
    static let chainError: @convention(c) (Int32, OpaquePointer?) -> Int32 = { isValid, context in
        guard let context, let argument = X509_STORE_CTX_get_ex_data(context, 0) else { return isValid }
        guard isValid != 1 else { return 1 }
        let code = X509_STORE_CTX_get_error(context)
        let collection = argument.assumingMemoryBound(to: PeerChain.ErrorCollection.self)
        collection.pointee.insert(
            code, depth: X509_STORE_CTX_get_error_depth(context), of: X509_STORE_CTX_get_current_cert(context))
        return collection.pointee.ends(with: code) ? 0 : 1
    }

    /// Returns the revocation lists of an issuer (X509_STORE_set_lookup_crls(3)), which OpenSSL releases.
    ///
    /// OpenSSL chooses one of several lists by its dates, and verifies only the signature of that one. A forged list would therefore
    /// make a good list of the same issuer unusable. It chooses the first of lists with the same date.
    static let revocationLists: @convention(c) (OpaquePointer?, OpaquePointer?) -> OpaquePointer? = { context, issuer in
        guard let context, let lists = X509_STORE_CTX_get1_crls(context, issuer) else { return nil }
        OpenSSLErrors.contained {
            RevocationListChoice.removeForged(from: lists, by: issuer, in: X509_STORE_CTX_get0_chain(context))
            RevocationListChoice.moveRevocationsFirst(in: lists, of: X509_STORE_CTX_get_current_cert(context))
        }
        return lists
    }

    /// Called for each message that is read or written (SSL_CTX_set_msg_callback(3)).
    static let message:
        @convention(c) (
            Int32, Int32, Int32, UnsafeRawPointer?, Int, OpaquePointer?, UnsafeMutableRawPointer?
        ) -> Void = { isWritten, version, type, start, count, ssl, _ in
            guard isWritten == 0, type == SSL3_RT_ALERT || type == SSL3_RT_HANDSHAKE, let start, let ssl,
                let notes = TLSHandshakeNotes.of(ssl)
            else { return }
            let bytes = UnsafeRawBufferPointer(start: start, count: count)
            let isTLS13 = version == TLS1_3_VERSION
            if type == SSL3_RT_HANDSHAKE {
                notes.handshakeMessageArrived(bytes, isTLS13: isTLS13)
            } else if bytes.count >= 2 {
                notes.alertArrived(level: bytes[0], description: bytes[1], isTLS13: isTLS13)
            }
        }

    /// Releases the watch when its SSL_CTX is freed (CRYPTO_get_ex_new_index(3)).
    static let release:
        @convention(c) (
            UnsafeMutableRawPointer?, UnsafeMutableRawPointer?, UnsafeMutablePointer<CRYPTO_EX_DATA>?, Int32, Int,
            UnsafeMutableRawPointer?
        ) -> Void = { _, held, _, _, _, _ in
            if let held { Unmanaged<HandshakeWatch>.fromOpaque(held).release() }
        }

    /// Returns the passphrase, a NUL-terminated argument (pem_password_cb(3)). Without an argument it returns none, because
    /// OpenSSL's own callback would prompt on the terminal.
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
