internal import CCurl
internal import Certificates

/// The library as it is loaded, which may be newer than the header that this was built with.
enum CurlLibrary {
    /// The version as libcurl writes it: `0x075801` is 7.88.1.
    static let version: UInt32 = {
        // curl_global_init(3) is not safe beside itself; a static is initialised once.
        // It initializes OpenSSL, which has to be told before how the process ends.
        OpenSSL.prepare()
        curl_global_init(Int(CURL_GLOBAL_DEFAULT))
        return netwatch_curl_version()?.pointee.version_num ?? 0
    }()

    /// The floor: what the engine relies on without asking.
    static let minimumVersion: UInt32 = 0x07_58_00

    /// Text for logs and errors, such as `7.88.1`.
    static var versionText: String { "\(version >> 16).\(version >> 8 & 0xFF).\(version & 0xFF)" }

    /// Whether it knows which domains belong to many (publicsuffix.org).
    static var hasPublicSuffixList: Bool { (netwatch_curl_version()?.pointee.features ?? 0) & CURL_VERSION_PSL != 0 }

    // Newer than the floor, by number, so that an older header does not matter.
    /// `CURLINFO_POSTTRANSFER_TIME_T`, since 8.10.0: when the request had gone out.
    static let postTransferTimeInfo = Int32(CURLINFO_OFF_T) + 67
    static var hasPostTransferTime: Bool { version >= 0x08_0A_00 }
    /// `CURLMOPT_NETWORK_CHANGED`, since 8.16.0, and its bits `CURLMNWC_CLEAR_CONNS` and `CURLMNWC_CLEAR_DNS`: connections that are idle are
    /// closed, names are forgotten.
    static let networkChangedOption = CURLMoption(rawValue: 17)
    static let clearsConnectionsAndNames = 1 << 0 | 1 << 1
    static var hasNetworkChanged: Bool { version >= 0x08_10_00 }
}
