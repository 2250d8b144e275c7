internal import CCurl
internal import Certificates

/// The loaded libcurl, which may be newer than the header at build time.
enum CurlLibrary {
    /// The version as libcurl writes it: `0x075801` is 7.88.1.
    static let version: UInt32 = {
        // curl_global_init(3) must not run twice at a time; a static property is initialized once.
        // It initializes OpenSSL, whose exit handlers have to be configured before.
        OpenSSL.prepare()
        curl_global_init(Int(CURL_GLOBAL_DEFAULT))
        return netwatch_curl_version()?.pointee.version_num ?? 0
    }()

    /// The minimum version. The engine uses its functions without a check.
    static let minimumVersion: UInt32 = 0x07_58_00

    /// The version as text for logs and errors, such as `7.88.1`.
    static var versionText: String { "\(version >> 16).\(version >> 8 & 0xFF).\(version & 0xFF)" }

    /// The features that libcurl was built with, as bits (curl_version_info(3)).
    static var features: Int32 { netwatch_curl_version()?.pointee.features ?? 0 }

    /// Whether a handle keeps a pointer to a field of its last transfer after the field is freed (``FirstFieldWatch``).
    static let keepsFreedField = version < 0x08_01_00

    // Newer than the minimum version. They are defined by number, so that an older header suffices.
    /// `CURLINFO_POSTTRANSFER_TIME_T`, since 8.10.0: the time at which the request was sent completely.
    static let postTransferTimeInfo = Int32(CURLINFO_OFF_T) + 67
    static var hasPostTransferTime: Bool { version >= 0x08_0A_00 }
    /// `CURLMOPT_NETWORK_CHANGED`, since 8.16.0. Its bits `CURLMNWC_CLEAR_CONNS` and `CURLMNWC_CLEAR_DNS` close idle connections and clear the cache
    /// of names. They are one bit until 8.20, which calls it `CURLMNWC_CLEAR_ALL` and has other ones for each.
    static let networkChangedOption = CURLMoption(rawValue: 17)
    static let clearsConnectionsAndNames = 1 << 0 | 1 << 1
    static var hasNetworkChanged: Bool { version >= 0x08_10_00 }
}
