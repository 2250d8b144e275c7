import FoundationEssentials

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
