// SPDX-License-Identifier: MIT
// C++'s own files and folders on a fake machine with two GPUs and two CPU nodes. Exits with 0, or
// says what is wrong.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <string>

namespace fs = std::filesystem;

static const std::string nodes = "/sys/class/kfd/kfd/topology/nodes";
static int wrong;

static void expect(bool good, const char *what)
{
    if (!good) {
        std::cerr << what << "\n";
        wrong++;
    }
}

int main()
{
    std::set<std::string> names;
    int gpus = 0;

    for (const auto &node : fs::directory_iterator(nodes)) {
        std::ifstream file(node.path() / "gpu_id");
        unsigned long id = 0;

        expect(bool(file >> id), "gpu_id is read by a stream");
        gpus += id != 0;
    }
    expect(gpus == 2, "a folder is iterated");
    for (const auto &entry : fs::directory_iterator("/dev"))
        names.insert(entry.path().filename());
    expect(names.count("kfd") && names.count("dri") && names.count("null"), "/dev has both");
    expect(fs::is_character_file("/dev/kfd"), "/dev/kfd is a character device");
    expect(fs::is_character_file("/dev/dri/renderD129"), "and so is a render node");
    expect(!fs::exists("/dev/dri/renderD130"), "a third one does not exist");
    expect(fs::canonical("/sys/class/drm/renderD128").string().rfind("/sys/devices/pci", 0) == 0,
           "a link is followed");
    int found = 0;
    for (const auto &entry : fs::recursive_directory_iterator("/sys/class/kfd/kfd/topology"))
        found += entry.path().filename() == "gpu_id" && entry.is_regular_file();
    expect(found == 4, "a tree is iterated");
    fs::current_path("/dev/dri");
    expect(fs::current_path() == "/dev/dri" && fs::exists("card1"), "the current path");
    expect(!std::ofstream(nodes + "/0/gpu_id"), "a file can't be written");
    return wrong;
}
