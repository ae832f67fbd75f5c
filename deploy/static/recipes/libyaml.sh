# YAML in.
SOURCE=libyaml LICENSE=MIT
build() {
    run_cmake -Os -DBUILD_TESTING=OFF
    simple_pc yaml yaml-0.1 "$(sed -n 's/^set *(YAML_VERSION_\(MAJOR\|MINOR\|PATCH\) \([0-9]*\)).*/\2/p' CMakeLists.txt | paste -sd.)"
}
