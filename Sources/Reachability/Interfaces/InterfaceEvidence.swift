/// What was read of one interface outside rtnetlink's link message. Absent facts are `nil` or false.
package struct InterfaceEvidence: Hashable, Sendable, Codable {
    /// `DEVTYPE` of sysfs' uevent: `wlan`, `wwan`, `gadget`, `bluetooth`, `bridge`, …
    package var deviceType: String?
    /// Whether sysfs has a `phy80211` link, or nl80211 lists the interface.
    package var isWireless: Bool
    /// The driver: ethtool's GDRVINFO, else sysfs' `device/driver`.
    package var driver: String?
    /// The bus that the device sits on: sysfs' `device/subsystem`, such as `pci`, `usb`, `virtio`, `gadget`.
    package var bus: String?
    /// Which readers were asked and answered: `sysfs`, `ethtool`, `nl80211`.
    package var sources: [String]

    /// Evidence, empty unless given.
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
