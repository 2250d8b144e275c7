import Foundation

enum SystemDefaults {
    /// Whether the environment names a proxy, as libcurl reads it (curl(1), "ENVIRONMENT"); which requests it is for, libcurl decides.
    static var namesProxy: Bool {
        let environment = ProcessInfo.processInfo.environment
        return ["http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"].contains {
            environment[$0]?.isEmpty == false
        }
    }
}

extension HTTPRequestSerializer {
    /// A serializer that tells the server this user's languages, this program and this system.
    public init() {
        let process = ProcessInfo.processInfo
        self.init(
            preferredLanguages: Locale.preferredLanguages,
            userAgent: RequestFields.userAgent(
                product: process.processName, version: nil, system: process.operatingSystemVersionString))
    }
}
