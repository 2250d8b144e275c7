internal import COpenSSL

/// A library context of OpenSSL (OSSL_LIB_CTX(3)) for TLS clients, in which certificates are decoded faster.
///
/// OpenSSL 3.0 decodes the public key of each certificate by the decoders of its providers. For each key it asks all of them, 40
/// in the default provider, although only 12 of them decode public keys of certificates: the structure SubjectPublicKeyInfo in
/// DER. This context has a provider of its own. It has all algorithms of the default provider, in the same implementations, and
/// only those 12 decoders. Needed until OpenSSL 3.0 is not supported any more.
///
/// Measured (OpenSSL 3.0.19, one P-256 certificate): a handshake of a client takes 250 µs instead of 290 µs. Decision 0021 has the
/// alternatives.
enum TLSLibraryContext {
    /// The context; `nil` if OpenSSL's own has to be used. Like OpenSSL's own, it is never freed.
    // `nonisolated(unsafe)`: a library context has its own locks.
    nonisolated(unsafe) static let pointer: OpaquePointer? = OpenSSLErrors.contained { make() }

    private static func make() -> OpaquePointer? {
        guard OPENSSL_version_major() == 3, OPENSSL_version_minor() == 0, hasOnlyDefaultProvider, original != nil,
            let context = OSSL_LIB_CTX_new()
        else { return nil }
        guard OSSL_PROVIDER_add_builtin(context, "netwatch", initialize) == 1, OSSL_PROVIDER_load(context, "netwatch") != nil
        else {
            OSSL_LIB_CTX_free(context)
            return nil
        }
        return context
    }

    /// Whether the process has the default provider alone, and no default properties. Otherwise the administrator has chosen
    /// providers (config(5)), such as that of FIPS.
    private static var hasOnlyDefaultProvider: Bool {
        var isOnly = true
        let isComplete = withUnsafeMutablePointer(to: &isOnly) { pointer in
            OSSL_PROVIDER_do_all(
                nil,
                { provider, isOnly in
                    let name = OSSL_PROVIDER_get0_name(provider).map { String(cString: $0) }
                    if name != "default" { isOnly?.assumingMemoryBound(to: Bool.self).pointee = false }
                    return 1
                }, pointer)
        }
        return isComplete == 1 && isOnly && EVP_default_properties_is_fips_enabled(nil) == 0
    }

    // MARK: The provider (provider(7))

    /// The default provider, loaded into a context of its own, and its decoders of public keys.
    private struct Original {
        let provider: OpaquePointer
        let decoders: UnsafePointer<OSSL_ALGORITHM>

        init?() {
            guard let context = OSSL_LIB_CTX_new(), let provider = OSSL_PROVIDER_load(context, "default") else { return nil }
            var isChanging: Int32 = 0
            guard var next = OSSL_PROVIDER_query_operation(provider, OSSL_OP_DECODER, &isChanging), isChanging == 0 else {
                return nil
            }
            var kept: [OSSL_ALGORITHM] = []
            while next.pointee.algorithm_names != nil {
                if Self.isForPublicKeys(next.pointee) { kept.append(next.pointee) }
                next += 1
            }
            guard !kept.isEmpty else { return nil }
            let decoders = UnsafeMutablePointer<OSSL_ALGORITHM>.allocate(capacity: kept.count + 1)
            (decoders + kept.count).initialize(to: OSSL_ALGORITHM())
            for (index, decoder) in kept.enumerated() { (decoders + index).initialize(to: decoder) }
            self.provider = provider
            self.decoders = UnsafePointer(decoders)
        }

        private static func isForPublicKeys(_ decoder: OSSL_ALGORITHM) -> Bool {
            let properties = decoder.property_definition.map { String(cString: $0).split(separator: ",") } ?? []
            return properties.contains("input=der") && properties.contains("structure=SubjectPublicKeyInfo")
        }
    }

    // `nonisolated(unsafe)`: the values do not change, and a provider has its own locks.
    nonisolated(unsafe) private static let original = Original()

    /// Returns the algorithms of an operation.
    private static let query:
        @convention(c) (
            UnsafeMutableRawPointer?, Int32, UnsafeMutablePointer<Int32>?
        ) -> UnsafePointer<OSSL_ALGORITHM>? = { _, operation, isChanging in
            guard let original else { return nil }
            isChanging?.pointee = 0
            return operation == OSSL_OP_DECODER
                ? original.decoders : OSSL_PROVIDER_query_operation(original.provider, operation, isChanging)
        }

    /// Reports capabilities, such as the groups of TLS.
    private static let capabilities:
        @convention(c) (
            UnsafeMutableRawPointer?, UnsafePointer<CChar>?,
            (@convention(c) (UnsafePointer<OSSL_PARAM>?, UnsafeMutableRawPointer?) -> Int32)?, UnsafeMutableRawPointer?
        ) -> Int32 = { _, name, callback, argument in
            guard let original else { return 0 }
            return OSSL_PROVIDER_get_capabilities(original.provider, name, callback, argument)
        }

    // `nonisolated(unsafe)`: the table does not change.
    nonisolated(unsafe) private static let table: UnsafePointer<OSSL_DISPATCH> = {
        typealias Function = @convention(c) () -> Void
        // OSSL_DISPATCH has one type for all functions; OpenSSL calls each with the type of its identifier.
        let table = UnsafeMutablePointer<OSSL_DISPATCH>.allocate(capacity: 3)
        table.initialize(
            to: OSSL_DISPATCH(
                function_id: OSSL_FUNC_PROVIDER_QUERY_OPERATION, function: unsafeBitCast(query, to: Function.self)))
        (table + 1).initialize(
            to: OSSL_DISPATCH(
                function_id: OSSL_FUNC_PROVIDER_GET_CAPABILITIES, function: unsafeBitCast(capabilities, to: Function.self)))
        (table + 2).initialize(to: OSSL_DISPATCH(function_id: 0, function: nil))
        return UnsafePointer(table)
    }()

    /// Creates the provider. Its implementations receive the context of the default provider, to which they belong.
    private static let initialize:
        @convention(c) (
            OpaquePointer?, UnsafePointer<OSSL_DISPATCH>?, UnsafeMutablePointer<UnsafePointer<OSSL_DISPATCH>?>?,
            UnsafeMutablePointer<UnsafeMutableRawPointer?>?
        ) -> Int32 = { _, _, functions, context in
            guard let original, let functions, let context else { return 0 }
            functions.pointee = table
            context.pointee = OSSL_PROVIDER_get0_provider_ctx(original.provider)
            return 1
        }
}
