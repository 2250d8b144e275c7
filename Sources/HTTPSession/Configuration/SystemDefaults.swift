import FoundationEssentials

extension HTTPRequestSerializer {
    /// Creates a serializer that sends this user's languages, and the names of this program and this system.
    public init() {
        let process = ProcessInfo.processInfo
        self.init(
            preferredLanguages: Locale.preferredLanguages,
            userAgent: RequestFields.userAgent(
                product: process.processName, version: nil, system: process.operatingSystemVersionString))
    }
}
