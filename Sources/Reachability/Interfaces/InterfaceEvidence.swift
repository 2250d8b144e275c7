/// The facts about one interface from outside rtnetlink's link message. Absent facts are `nil` or false.
package struct InterfaceEvidence: Hashable, Sendable, Codable {
    /// `DEVTYPE` of the uevent file in sysfs: `wlan`, `wwan`, `gadget`, `bluetooth`, `bridge`, …
    package var deviceType: String?
    /// Whether sysfs has a `phy80211` link, or nl80211 lists the interface.
    package var isWireless: Bool
    /// The driver, from ethtool's GDRVINFO or else from `device/driver` in sysfs.
    package var driver: String?
    /// The bus of the device, from `device/subsystem` in sysfs: `pci`, `usb`, `virtio`, `gadget`, ….
    package var bus: String?
    /// The readers that answered: `sysfs`, `ethtool`, `nl80211`.
    package var sources: [String]

    /// Creates evidence, empty by default.
    package init(
        deviceType: String? = nil, isWireless: Bool = false, driver: String? = nil, bus: String? = nil, sources: [String] = []
    ) {
        self.deviceType = deviceType
        self.isWireless = isWireless
        self.driver = driver
        self.bus = bus
        self.sources = sources
    }
}
