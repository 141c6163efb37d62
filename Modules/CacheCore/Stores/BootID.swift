#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// The identity of the current boot of the system.
package enum BootID {
  /// A text that differs after each boot, or `nil` if the system does not provide one.
  package static var name: String? {
    var bytes = [UInt8](repeating: 0, count: 64)
    #if canImport(Darwin)
    var count = bytes.count
    guard sysctlbyname("kern.bootsessionuuid", &bytes, &count, nil, 0) == 0 else { return nil }
    #else
    let descriptor = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    guard read(descriptor, &bytes, bytes.count) > 0 else { return nil }
    #endif
    let text = String(decoding: bytes.prefix { $0 > 0x20 }, as: UTF8.self)
    return text.isEmpty ? nil : text
  }
}
