internal import CCurl
internal import Certificates
internal import EventLoop
internal import Glibc

/// The C functions that libcurl calls. Each finds its object and calls it, on the loop's thread, inside a call of the engine to libcurl.
enum CurlTrampolines {
    /// Installs the functions that a transfer needs. Each finds its transfer in ``EasyHandle/transfer``, so that later transfers can use the handle.
    static func install(on handle: EasyHandle, for transfer: CurlTransfer) throws(HTTPSessionError) {
        let (raw, context) = (handle.raw, Unmanaged.passUnretained(handle).toOpaque())
        try handle.set(CURLOPT_PRIVATE, pointer: context)
        try CurlFailure.check(netwatch_curl_set_transfer(raw, Int32(bitPattern: CURLOPT_WRITEFUNCTION.rawValue), write))
        try handle.set(CURLOPT_WRITEDATA, pointer: context)
        try CurlFailure.check(netwatch_curl_set_transfer(raw, Int32(bitPattern: CURLOPT_HEADERFUNCTION.rawValue), header))
        try handle.set(CURLOPT_HEADERDATA, pointer: context)
        if CurlLibrary.keepsFreedField {
            try CurlFailure.check(netwatch_curl_set_debug(raw, debug))
            try handle.set(CURLOPT_DEBUGDATA, pointer: context)
        }
        try CurlFailure.check(netwatch_curl_set_prereq(raw, beforeRequest))
        try handle.set(CURLOPT_PREREQDATA, pointer: context)
        try CurlFailure.check(netwatch_curl_set_socket_options(raw, socketMade))
        try handle.set(CURLOPT_SOCKOPTDATA, pointer: context)
        // Connections outlive their transfers and handles, but not the engine.
        try CurlFailure.check(netwatch_curl_set_close_socket(raw, closeSocket))
        try handle.set(CURLOPT_CLOSESOCKETDATA, pointer: Unmanaged.passUnretained(transfer.engine.watched).toOpaque())
        try CurlFailure.check(netwatch_curl_set_resolver_start(raw, lookupStarts))
        try handle.set(CURLOPT_RESOLVER_START_DATA, pointer: context)
        if transfer.plan.checksAddresses {
            try CurlFailure.check(netwatch_curl_set_open_socket(raw, openSocket))
            try handle.set(CURLOPT_OPENSOCKETDATA, pointer: context)
        }
        if transfer.trust != nil {
            try CurlFailure.check(netwatch_curl_set_ssl_context(raw, secureContext))
            try handle.set(CURLOPT_SSL_CTX_DATA, pointer: context)
        }
        guard transfer.plan.body != .none else { return }
        try CurlFailure.check(netwatch_curl_set_transfer(raw, Int32(bitPattern: CURLOPT_READFUNCTION.rawValue), read))
        try handle.set(CURLOPT_READDATA, pointer: context)
        try CurlFailure.check(netwatch_curl_set_seek(raw, seek))
        try handle.set(CURLOPT_SEEKDATA, pointer: context)
    }

    static func install(on multi: UnsafeMutableRawPointer, for engine: CurlEngine) throws(HTTPSessionError) {
        let context = Unmanaged.passUnretained(engine).toOpaque()
        try CurlFailure.check(netwatch_curl_multi_set_socket(multi, socket))
        try CurlFailure.check(
            netwatch_curl_multi_set_pointer(multi, Int32(bitPattern: CURLMOPT_SOCKETDATA.rawValue), context))
        try CurlFailure.check(netwatch_curl_multi_set_timer(multi, timer))
        try CurlFailure.check(
            netwatch_curl_multi_set_pointer(multi, Int32(bitPattern: CURLMOPT_TIMERDATA.rawValue), context))
    }

    /// The transfer that uses a handle (CURLOPT_PRIVATE).
    static func transfer(of raw: UnsafeMutableRawPointer) -> CurlTransfer? {
        var pointer: UnsafeMutableRawPointer?
        guard netwatch_curl_get_pointer(raw, Int32(bitPattern: CURLINFO_PRIVATE.rawValue), &pointer) == CURLE_OK else {
            return nil
        }
        return transfer(pointer)
    }

    private static func transfer(_ context: UnsafeMutableRawPointer?) -> CurlTransfer? {
        unretainedTransfer(context)?.takeUnretainedValue()
    }

    private static func unretainedTransfer(_ context: UnsafeMutableRawPointer?) -> Unmanaged<CurlTransfer>? {
        context.flatMap { Unmanaged<EasyHandle>.fromOpaque($0)._withUnsafeGuaranteedRef(\.unretainedTransfer) }
    }

    private static let write: @convention(c) (UnsafeMutablePointer<CChar>?, Int, Int, UnsafeMutableRawPointer?) -> Int = {
        bytes, size, count, context in
        guard let transfer = unretainedTransfer(context) else { return 0 }
        TLSReading.noteProgress()
        let buffer = UnsafeRawBufferPointer(start: bytes, count: size * count)
        return transfer._withUnsafeGuaranteedRef { $0.receive(buffer) }
    }

    private static let header: @convention(c) (UnsafeMutablePointer<CChar>?, Int, Int, UnsafeMutableRawPointer?) -> Int = {
        bytes, size, count, context in
        guard let transfer = unretainedTransfer(context) else { return 0 }
        TLSReading.noteProgress()
        let buffer = UnsafeRawBufferPointer(start: bytes, count: size * count)
        return transfer._withUnsafeGuaranteedRef { $0.receiveHeader(buffer) }
    }

    private static let debug:
        @convention(c) (
            UnsafeMutableRawPointer?, curl_infotype, UnsafeMutablePointer<CChar>?, Int, UnsafeMutableRawPointer?
        ) -> Int32 = { _, type, bytes, count, context in
            guard type == CURLINFO_HEADER_IN, let transfer = transfer(context) else { return 0 }
            transfer.isAboutToKeep(UnsafeMutableRawBufferPointer(start: bytes, count: count))
            return 0
        }

    private static let read: @convention(c) (UnsafeMutablePointer<CChar>?, Int, Int, UnsafeMutableRawPointer?) -> Int = {
        bytes, size, count, context in
        guard let transfer = transfer(context) else { return Int(CURL_READFUNC_ABORT) }
        return transfer.provide(UnsafeMutableRawBufferPointer(start: bytes, count: size * count))
    }

    private static let seek: @convention(c) (UnsafeMutableRawPointer?, curl_off_t, Int32) -> Int32 = { context, offset, origin in
        guard let transfer = transfer(context), offset == 0, origin == SEEK_SET else { return CURL_SEEKFUNC_CANTSEEK }
        return transfer.rewind() ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL
    }

    private static let beforeRequest:
        @convention(c) (
            UnsafeMutableRawPointer?, UnsafeMutablePointer<CChar>?, UnsafeMutablePointer<CChar>?, Int32, Int32
        ) -> Int32 = { context, remoteAddress, localAddress, remotePort, localPort in
            let connection = IdleSockets.Connection(
                remoteAddress: remoteAddress.map { String(cString: $0) } ?? "", remotePort: remotePort,
                localAddress: localAddress.map { String(cString: $0) } ?? "", localPort: localPort)
            let may = transfer(context)?.mayRequest(on: connection, from: localAddress) == true
            return may ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
        }

    /// `CURLOPT_SOCKOPTFUNCTION`, called when a socket is made, which has an address by then. Sets FD_CLOEXEC, which libcurl does not: a child
    /// process that inherited the socket would keep the connection open.
    private static let socketMade: @convention(c) (UnsafeMutableRawPointer?, curl_socket_t, curlsocktype) -> Int32 = {
        context, socket, _ in
        _ = fcntl(socket, F_SETFD, FD_CLOEXEC)
        guard let transfer = transfer(context) else { return CURL_SOCKOPT_OK }
        do throws(LoopError) { try transfer.engine.watched.made(socket) } catch {
            transfer.networkRefusal = CurlEngine.refusal(error)
            return CURL_SOCKOPT_ERROR
        }
        if let refusal = DescriptorBudget.refusal(of: socket, limit: DescriptorUse.currentLimit) {
            transfer.networkRefusal = refusal
            return CURL_SOCKOPT_ERROR
        }
        return transfer.mayConnect(socket) ? CURL_SOCKOPT_OK : CURL_SOCKOPT_ERROR
    }

    /// `CURLOPT_OPENSOCKETFUNCTION`: makes the same socket as libcurl, or none if the connection is not permitted.
    private static let openSocket:
        @convention(c) (UnsafeMutableRawPointer?, curlsocktype, UnsafeMutablePointer<curl_sockaddr>?) -> curl_socket_t = {
            context, _, address in
            guard let address, let transfer = transfer(context) else { return -1 }
            let (family, length) = (address.pointee.family, socklen_t(address.pointee.addrlen))
            // The address is longer than its type: the end of curl_sockaddr has the size of the family's addresses.
            let place = UnsafeRawPointer(address) + (MemoryLayout<curl_sockaddr>.offset(of: \.addr) ?? 0)
            guard transfer.mayConnect(to: place.assumingMemoryBound(to: sockaddr.self), length) else { return -1 }
            return Glibc.socket(family, address.pointee.socktype | Int32(SOCK_CLOEXEC.rawValue), address.pointee.protocol)
        }

    /// `CURLOPT_CLOSESOCKETFUNCTION`, called for a socket that belongs to a connection. The engine may be in its deinitializer.
    private static let closeSocket: @convention(c) (UnsafeMutableRawPointer?, curl_socket_t) -> Int32 = { context, socket in
        guard let context else { return close(socket) }
        return Unmanaged<WatchedSockets>.fromOpaque(context)._withUnsafeGuaranteedRef { $0.close(socket) }
    }

    private static let lookupStarts:
        @convention(c) (
            UnsafeMutableRawPointer?, UnsafeMutableRawPointer?, UnsafeMutableRawPointer?
        ) -> Int32 = { _, _, context in
            transfer(context)?.isAboutToLookUp()
            return 0
        }

    private static let secureContext:
        @convention(c) (
            UnsafeMutableRawPointer?, UnsafeMutableRawPointer?, UnsafeMutableRawPointer?
        ) -> CURLcode = { _, secureContext, context in
            guard let transfer = transfer(context), let secureContext else { return CURLE_ABORTED_BY_CALLBACK }
            return transfer.prepare(secureContext: secureContext) ? CURLE_OK : CURLE_SSL_CERTPROBLEM
        }

    private static let socket:
        @convention(c) (
            UnsafeMutableRawPointer?, curl_socket_t, Int32, UnsafeMutableRawPointer?, UnsafeMutableRawPointer?
        ) -> Int32 = { handle, socket, what, context, _ in
            guard let context else { return -1 }
            let engine = Unmanaged<CurlEngine>.fromOpaque(context).takeUnretainedValue()
            engine.watch(socket, for: what) { handle.flatMap { CurlTrampolines.transfer(of: $0) } }
            return 0
        }

    private static let timer: @convention(c) (UnsafeMutableRawPointer?, Int, UnsafeMutableRawPointer?) -> Int32 = {
        _, milliseconds, context in
        guard let context else { return -1 }
        Unmanaged<CurlEngine>.fromOpaque(context).takeUnretainedValue().setTimer(milliseconds: milliseconds)
        return 0
    }
}
